/** The control on Redis: INCR, at whichever of the servers takes it. */
import { Redis } from "ioredis";
import { TESTER_LOGIN } from "../redis/shipped-users.js";
import { Control } from "./control.js";

const KEY = "control";

export function redisControl(addresses: readonly { readonly host: string; readonly port: number }[]): Control {
  const connections = addresses.map(({ host, port }) => {
    const times = { maxRetriesPerRequest: 0, commandTimeout: 1_000, retryStrategy: () => 20 };
    const redis = new Redis({ host, port, ...TESTER_LOGIN, ...times });
    redis.on("error", () => {});
    return redis;
  });
  let turn = 0;
  return new Control({
    // As an importer that looks for the master: the next one after each failure.
    next: async () => {
      try {
        return await (connections[turn % connections.length] as Redis).incr(KEY);
      } catch (error) {
        turn++;
        throw error;
      }
    },
    end: () => {
      for (const redis of connections) redis.disconnect();
    },
  });
}
