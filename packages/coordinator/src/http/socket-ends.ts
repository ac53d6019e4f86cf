/** The encrypted socket does not tell what it stands on, but it has the same ends. Pure. */
import type { Socket } from "node:net";

/** Of no two connections that are open at the same time. */
export function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
