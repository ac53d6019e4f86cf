/** Whether a host is this machine. Pure. */
import { isIP } from "node:net";

/** A name or an address, without brackets. */
export function isLoopback(host: string): boolean {
  return host.toLowerCase() === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}
