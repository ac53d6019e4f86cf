/** A server that hears commands as Redis does, one after the other on each connection, and answers as whoever made it says. */
import { type AddressInfo, createServer, type Socket } from "node:net";
import { readMessage } from "./resp.js";

export interface RespServer {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * @param answer is told the words of each command, and writes what it likes; the connection may be gone.
 * @param host where it listens.
 */
export async function startRespServer(
  answer: (words: readonly string[], socket: Socket) => void,
  host = "127.0.0.1",
): Promise<RespServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    let rest: Buffer = Buffer.alloc(0);
    socket.on("data", (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      for (let message = readMessage(rest); message; message = readMessage(rest)) {
        rest = rest.subarray(message.end);
        answer(message.value as readonly string[], socket);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
