/**
 * What happens between a coordinator and its server: connections killed, responses lost, late or cut off, errors of the server.
 * Guarantees: G4 (docs/guarantees.md).
 */
import type { Redis } from "ioredis";
import { scriptNamed } from "../../../packages/coordinator/src/stores/redis/scripts.js";
import { startFaultyProxy } from "../../redis/faulty-proxy.js";
import { Apart } from "../apart.js";
import { recover } from "../commands.js";
import { type RedisWorld, redisFault, UNUSED_PORT } from "../redis-world.js";
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
  redisFault(
    "the reply to a step lost after it was done, then the step again",
    { coordinatorCount: 1, injectionCountMax: 1, expected: ["store_unavailable", "epoch_changed"] },
    loseReplies,
  ),
  replyUnderway("the server follows another one, and is a master again", "manual_recovery_required", (world) =>
    world.on(world.server, async (redis) => {
      await redis.replicaof("127.0.0.1", UNUSED_PORT);
      await redis.replicaof("NO", "ONE");
    }),
  ),
  replyUnderway("the server loses it and more", "epoch_changed", (world, before) =>
    world.crash(() => world.restore(before)),
  ),
  replyUnderway("the record is lost", "namespace_lost", (world) =>
    world.on(world.server, (redis) => redis.del(world.key("record"))),
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

const STEP = `evalsha ${scriptNamed("apply").sha1} `;
const LEASE_STEP = new RegExp(`^${STEP}.*\\{"holder"`, "s");
/** Its runs, its nonce and its holder, in the command of a step. */
const LEASE = /(\d+) (\S+) \{"holder"/g;
const LOST_LEASES = 8;
const LOST_OF_A_RECOVERY = 4;

/**
 * On one node a step is one script, and nothing is asked after it. So a coordinator is frozen as soon as the server has done its lease, and
 * reads the reply when the change is over. An operator recovers what only an operator can.
 */
function replyUnderway(
  what: string,
  code: "epoch_changed" | "manual_recovery_required" | "namespace_lost",
  change: (world: RedisWorld, before: string) => Promise<unknown>,
): Fault {
  return redisFault(
    `while the reply to a lease is underway, ${what}`,
    { injectionCountMax: 1, expected: [code] },
    async (world) => {
      const proxy = await startFaultyProxy(world.server);
      const coordinator = await world.addCoordinatorAt(proxy);
      world.defer(() => proxy.close());
      const apart = Apart.start(world, coordinator);
      await apart.lease();
      const before = await world.snapshot();
      await world.work();
      const { struck } = proxy.strikeNext((reply) => {
        coordinator.freeze();
        return reply;
      }, LEASE_STEP);
      const leased = apart.lease();
      await struck;
      await change(world, before);
      coordinator.thaw();
      await world.untilSeen(code);
      if (code !== "epoch_changed") await world.withoutCoordinators(() => recover(world));
      await leased;
      await coordinator.kill();
    },
  );
}

/** Leases of a coordinator that no other importer asks, then the steps of a recovery that it does alone. */
async function loseReplies(world: RedisWorld): Promise<void> {
  const proxy = await startFaultyProxy(world.server);
  world.defer(() => proxy.close());
  const apart = Apart.start(world, await world.addCoordinatorAt(proxy));
  const lost: string[] = [];
  for (let times = 0; times < LOST_LEASES; times++) {
    const { struck } = proxy.strikeNext("cut", LEASE_STEP);
    const [command] = await Promise.all([struck, apart.lease()]);
    lost.push(...[...command.matchAll(LEASE)].map(([, , nonce = ""]) => nonce));
  }
  await noteLost(world, lost);
  await world.withoutCoordinators(async () => {
    const snapshot = await world.snapshot();
    await apart.lease();
    await world.crash(() => world.restore(snapshot));
    for (let times = 0; times < LOST_OF_A_RECOVERY; times++) {
      await proxy.strikeNext("cut", new RegExp(`^${STEP}`)).struck;
    }
    await apart.lease();
  });
}

/** Their runs count as received from now on, so that nothing else may come of them. Each is in the ledger once: it was sent once. */
async function noteLost(world: RedisWorld, nonces: readonly string[]): Promise<void> {
  const { storeId, received } = world;
  const ledger = await world.on(world.server, (redis) => redis.xrange(world.key("ledger"), "-", "+"));
  const entries = ledger.filter(([, fields]) => nonces.includes(fields[7] as string));
  if (nonces.length < LOST_LEASES || entries.length !== nonces.length)
    world.noteProblem(`${nonces.length} replies to leases were lost, and the ledger has ${entries.length} of them`);
  for (const [id, [, runs]] of entries) {
    const [lastRun, runCount] = [Number.parseInt(id, 10), Number(runs)];
    const lease = { storeId, version: 0, firstRun: lastRun - runCount + 1, runCount };
    received.note({ importer: `a lost reply, ${id}`, ...lease, receivedAtMs: Date.now() });
  }
}
