/** A token that leaves the machine in plain text is told of: whoever is on the way can read it, and use it until it is revoked. */
import { isLoopback } from "../platform/loopback.js";
import { running } from "./command-io.js";

/** Says it on standard error, where people look and no program reads. `coordinator`: the address that a token goes to. */
export function warnOfPlainToken(coordinator: string): void {
  const command = running();
  const { protocol, hostname, host } = new URL(coordinator);
  if (command.hasWarnedOfPlainToken || protocol !== "http:" || isLoopback(hostname.replace(/^\[|\]$/g, ""))) return;
  command.hasWarnedOfPlainToken = true;
  command.io.stderr.write(
    `callnumber: the token goes to http://${host} in plain text, and whoever is on the way can read it and use it. ` +
      "Ask by https://, or by a tunnel that ends on this machine\n",
  );
}
