/** Servers that read commands as Redis does, one after the other on each connection, and reply as a test decides. */
import { type AddressInfo, createServer, type Socket } from "node:net";
import { messageReader } from "./resp.js";

export interface RespServer {
  readonly port: number;
  close(): Promise<void>;
}

/** `answer` is given the words of each command and writes the reply; the connection may be gone. */
export async function startRespServer(
  answer: (words: readonly string[], socket: Socket) => void,
  host = "127.0.0.1",
): Promise<RespServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    const commandsIn = messageReader();
    socket.on("data", (chunk: Buffer) => {
      for (const { value } of commandsIn(chunk)) answer(value as readonly string[], socket);
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

/** Redis' own reply to a command that it does not know. */
export function unknownCommandReply([name = "", ...words]: readonly string[]): string {
  return `ERR unknown command '${name}', with args beginning with: ${words.map((word) => `'${word}'`).join(" ")} `;
}

/** A server that rejects every command and repeats its arguments, as Redis does with commands that were renamed. */
export function startEchoingRedis(): Promise<RespServer> {
  return startRespServer((words, socket) => {
    socket.write(`-${unknownCommandReply(words).replaceAll(/[\r\n]/g, " ")}\r\n`);
  });
}
