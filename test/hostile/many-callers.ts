/** Connections by the hundred, as they are, and such that whoever is asked can be spoken to on them. */
import type { Socket } from "node:net";
import { connect } from "node:tls";
import { opened, type Place } from "./raw-client.js";
import type { Target } from "./row.js";

const AT_ONCE = 100;

/** Nothing was said on them; their bytes are read, and nobody's. */
export function manyOpened(target: Place, count: number): Promise<readonly Socket[]> {
  return many(count, () => opened(target));
}

/** Encrypted where the target is. */
export function manySpeaking(target: Target, count: number): Promise<readonly Socket[]> {
  return many(count, async () => speaking(target, await opened(target)));
}

/** What HTTP is said on: the connection, or what encrypts it as soon as it does. A handshake that fails is a connection that is closed. */
export async function speaking({ isEncrypted = false }: Target, connection: Socket): Promise<Socket> {
  if (!isEncrypted) return connection;
  // Nobody knows the authority of a test's certificate.
  const socket = connect({ socket: connection, rejectUnauthorized: false });
  socket.on("error", () => {});
  await new Promise<void>((resolve) => {
    socket.once("secureConnect", () => resolve()).once("close", () => resolve());
  });
  return socket;
}

async function many(count: number, open: () => Promise<Socket>): Promise<readonly Socket[]> {
  const sockets: Socket[] = [];
  while (sockets.length < count) {
    const several = Array.from({ length: Math.min(AT_ONCE, count - sockets.length) }, open);
    sockets.push(...(await Promise.all(several)));
  }
  return sockets.map((socket) => socket.resume());
}
