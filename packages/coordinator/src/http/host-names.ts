/**
 * Where nobody is asked for a token, being able to reach the port is what lets a caller in. A browser can reach it, too: a page from anywhere
 * may give its own name our address and then ask as if it were ours (DNS rebinding). Its requests name its host, and are refused: only an
 * address, which nobody can give a page, and names that are known here are answered.
 */
import { isIP } from "node:net";
import { isLoopback } from "../platform/loopback.js";
import type { TypedApp } from "./app.js";
import type { Refusals } from "./error-answer.js";

/** Under which hosts requests are answered. */
export interface HostNames {
  /** `loopback`: `localhost` and the addresses of this machine alone. `any`: every address, and `localhost`. */
  readonly addresses: "loopback" | "any";
  /** Names beside these, in lower case, without a port. */
  readonly names: ReadonlySet<string>;
}

const ADDRESSES_IN_WORDS: Readonly<Record<HostNames["addresses"], string>> = {
  loopback: "localhost, 127.0.0.1 and [::1]",
  any: "an address, localhost",
};

/** From here on no request reaches a route that names another host. */
export function refuseForeignHosts(app: TypedApp, hostNames: HostNames, refusals: Refusals): void {
  const message =
    `without tokens requests must name one of these as their host: ${ADDRESSES_IN_WORDS[hostNames.addresses]} and what serve --allow-host names; ` +
    "a proxy in front must send one of them, or the coordinator needs tokens (serve --tokens-file)";
  app.addHook("onRequest", (request, reply, done) => {
    if (isAnsweredUnder(request.headers.host, hostNames)) done();
    else reply.send(refusals.refuse({ code: "forbidden", message }, request, reply));
  });
}

/** Whether a `Host` header, with any port, is one of them. */
export function isAnsweredUnder(host: string | undefined, { addresses, names }: HostNames): boolean {
  const [, inBrackets, plain = ""] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d{0,5})?$/.exec(host ?? "") ?? [];
  if (inBrackets !== undefined) return inBrackets === "::1" || (addresses === "any" && isIP(inBrackets) === 6);
  return isLoopback(plain) || names.has(plain.toLowerCase()) || (addresses === "any" && isIP(plain) === 4);
}
