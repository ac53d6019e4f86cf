/** Stops and goes on reading from a connection: it is read again when everybody who stopped it says so. */
import type { Socket } from "node:net";

const stops = new WeakMap<Socket, number>();

export function stopReading(socket: Socket): void {
  stops.set(socket, (stops.get(socket) ?? 0) + 1);
  socket.pause();
}

/** Once for each `stopReading`. */
export function readOn(socket: Socket): void {
  const count = (stops.get(socket) ?? 0) - 1;
  stops.set(socket, count);
  if (count === 0) socket.resume();
}
