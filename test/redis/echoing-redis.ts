/** A server that rejects every command and repeats its arguments, as Redis does with commands that were renamed. */
import { type RespServer, startRespServer } from "./resp-server.js";

/** Redis' own reply to a command that it does not know. */
export function unknownCommandReply([name = "", ...words]: readonly string[]): string {
  return `ERR unknown command '${name}', with args beginning with: ${words.map((word) => `'${word}'`).join(" ")} `;
}

export type EchoingRedis = RespServer;

export function startEchoingRedis(): Promise<EchoingRedis> {
  return startRespServer((words, socket) => {
    socket.write(`-${unknownCommandReply(words).replaceAll(/[\r\n]/g, " ")}\r\n`);
  });
}
