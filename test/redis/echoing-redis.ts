/** A server that refuses every command of Redis and repeats all its words, as a proxy does, or Redis one that was renamed. */
import { type RespServer, startRespServer } from "./resp-server.js";

/** How a refusal repeats the words of its command. */
export type Echo = (words: readonly string[]) => string;

/** Redis's own words where AUTH and HELLO were renamed. */
export const echoOfRedis: Echo = ([name = "", ...words]) =>
  `ERR unknown command '${name}', with args beginning with: ${words.map((word) => `'${word}'`).join(" ")} `;

/** Everything in other words, and one of them cut. */
export const echoOfProxy: Echo = (words) => `ERR not allowed here: ${words.join(" ").slice(0, -1)}`;

export interface EchoingRedis extends RespServer {
  /** The commands that came. */
  readonly commands: readonly (readonly string[])[];
}

export async function startEchoingRedis(echo: Echo): Promise<EchoingRedis> {
  const commands: (readonly string[])[] = [];
  const server = await startRespServer((words, socket) => {
    commands.push(words);
    socket.write(`-${echo(words).replaceAll(/[\r\n]/g, " ")}\r\n`);
  });
  return { ...server, commands };
}
