/** Paths, private files and addresses of this machine. An entry of its own, because it loads nothing but the platform. */
import { isIP } from "node:net";

export { faultOfMode, readPrivateFile } from "./private-file.js";
export { LinkLeadsNowhere, realPathOf } from "./real-path.js";

/** Whether a host, a name or an address without brackets, is this machine. */
export function isLoopback(host: string): boolean {
  return host.toLowerCase() === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}
