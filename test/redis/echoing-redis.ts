/** A server that refuses every command of Redis and repeats all its words, as a proxy does, or Redis one that was renamed. */
import { type AddressInfo, createServer, type Socket } from "node:net";
import { readMessage } from "./resp.js";

/** How a refusal repeats the words of its command. */
export type Echo = (words: readonly string[]) => string;

/** Redis's own words where AUTH and HELLO were renamed. */
export const echoOfRedis: Echo = ([name = "", ...words]) =>
  `ERR unknown command '${name}', with args beginning with: ${words.map((word) => `'${word}'`).join(" ")} `;

/** Everything in other words, and one of them cut. */
export const echoOfProxy: Echo = (words) => `ERR not allowed here: ${words.join(" ").slice(0, -1)}`;

export interface EchoingRedis {
  readonly port: number;
  /** The commands that came. */
  readonly commands: readonly (readonly string[])[];
  close(): Promise<void>;
}

export async function startEchoingRedis(echo: Echo): Promise<EchoingRedis> {
  const sockets = new Set<Socket>();
  const commands: (readonly string[])[] = [];
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    let rest: Buffer = Buffer.alloc(0);
    socket.on("data", (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      for (let message = readMessage(rest); message; message = readMessage(rest)) {
        rest = rest.subarray(message.end);
        const words = message.value as readonly string[];
        commands.push(words);
        socket.write(`-${echo(words).replaceAll(/[\r\n]/g, " ")}\r\n`);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    commands,
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
