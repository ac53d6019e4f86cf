/**
 * Where nobody is asked for a token, being on this machine is what lets a caller in. A browser is on it, too: a page from anywhere may
 * give its own name the address 127.0.0.1 and then ask as if it were ours (DNS rebinding). Its requests name its host, and are refused.
 */
import { isLoopback } from "../loopback.js";
import type { TypedApp } from "./app.js";
import type { Refusals } from "./error-answer.js";

const MESSAGE =
  "without tokens only this machine is answered, under the names localhost, 127.0.0.1 and [::1]; a proxy in front must send one of them as Host, or the coordinator needs tokens (serve --tokens-file)";

/** From here on no request reaches a route that names another host than this machine. */
export function refuseForeignHosts(app: TypedApp, refusals: Refusals): void {
  app.addHook("onRequest", (request, reply, done) => {
    if (isLoopbackHost(request.headers.host)) done();
    else reply.send(refusals.refuse({ code: "forbidden", message: MESSAGE }, request, reply));
  });
}

/** Whether a `Host` header names this machine, with any port. */
export function isLoopbackHost(host: string | undefined): boolean {
  const [, inBrackets, plain = ""] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d{0,5})?$/.exec(host ?? "") ?? [];
  return inBrackets === undefined ? isLoopback(plain) : inBrackets === "::1";
}
