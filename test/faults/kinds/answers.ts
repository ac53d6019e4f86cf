/**
 * What happens between a coordinator and its server: connections killed, responses lost, late or cut off, errors of the server.
 * Guarantees: G4 (docs/guarantees.md).
 */
import type { Redis } from "ioredis";
import { startFaultyProxy } from "../../redis/faulty-proxy.js";
import { redisFault } from "../redis-world.js";
import type { Fault } from "../run-fault.js";
import { oneOf } from "../seeded-random.js";

export const ANSWERS: readonly Fault[] = [
  redisFault("CLIENT KILL of every connection", { expected: ["store_unavailable"] }, async (world) => {
    for (let time = 0; time < 5; time++) {
      await world.on(world.server, (redis) => redis.call("CLIENT", "KILL", "TYPE", "normal"));
      await world.work(5);
    }
  }),
  redisFault(
    "responses delayed, lost or cut off",
    { isShort: true, expected: ["store_unavailable"] },
    async (world) => {
      const proxy = await startFaultyProxy(world.server);
      const coordinator = await world.addCoordinatorAt(proxy);
      try {
        for (const fault of oneOf(world.random, [["hold", "cut"] as const, ["cut", "hold"] as const])) {
          const ordered = proxy.strikeNext(fault, /^(?:evalsha|wait)/i);
          await ordered.struck;
          await world.work();
          ordered.release();
        }
        // Lost with their connection, a while later.
        proxy.holdAnswers();
        await world.work();
        proxy.heal();
        // An importer that waits for one must not lose its coordinator first.
        await world.untilSeen("store_unavailable");
      } finally {
        await world.removeCoordinator(coordinator);
        await proxy.close();
      }
    },
  ),
  redisFault("OOM, NOSCRIPT or BUSY", { expected: ["store_unavailable"] }, async (world) => {
    const ways = [
      async (redis: Redis) => {
        await redis.config("SET", "maxmemory", "1");
        await world.untilSeen("store_unavailable");
        await redis.config("SET", "maxmemory", "0");
      },
      async (redis: Redis) => {
        await redis.call("SCRIPT", "FLUSH");
        await world.untilSeen("store_unavailable");
      },
      async (redis: Redis) => {
        await redis.config("SET", "busy-reply-threshold", "1");
        const busy = redis.eval("while true do end", 0).catch(() => {});
        await world.untilSeen("store_unavailable");
        await world.on(world.server, (other) => other.call("SCRIPT", "KILL"));
        await busy;
      },
    ];
    await world.on(world.server, oneOf(world.random, ways));
  }),
];
