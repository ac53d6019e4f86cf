/**
 * What other programs and manual edits do to the data of a running server: emptied, swapped, copied back, edited.
 * Guarantees: G3, G5 (docs/guarantees.md).
 */
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Redis } from "ioredis";
import { type NamespaceState, readRecord, storedFields } from "../../../packages/coordinator/src/guard/record.js";
import { isRefusal } from "../../../packages/coordinator/src/guard/refusals.js";
import { initBackdated } from "../../backdated.js";
import { launchRedisServer } from "../../redis/redis-server.js";
import { recover } from "../commands.js";
import { Importer } from "../load.js";
import { Received } from "../received.js";
import { type RedisWorld, redisFault } from "../redis-world.js";
import { Counts } from "../refusal-codes.js";
import type { Fault } from "../run-fault.js";
import { oneOf } from "../seeded-random.js";
import { BOUNDS, NAMESPACE } from "../world.js";

/** Longer than the suite's gap. */
const MONTH_MS = 31 * 24 * 3_600_000;
const RDB_ONLY = { save: "3600 1", appendonly: "no" };

export const MANUAL_EDITS: readonly Fault[] = [
  redisFault("FLUSHALL, DEL or RENAME", { isShort: true, expected: ["namespace_lost"] }, async (world) => {
    const record = world.key("record");
    const ways = [
      (redis: Redis) => redis.flushall(),
      (redis: Redis) => redis.del(record),
      (redis: Redis) => redis.rename(record, `${record}:away`),
    ];
    await world.on(world.server, async (redis) => await oneOf(world.random, ways)(redis));
    await world.untilSeen("namespace_lost");
    await recover(world);
  }),
  redisFault("SWAPDB, and back", { expected: ["namespace_lost"] }, async (world) => {
    await world.on(world.server, (redis) => redis.swapdb(0, 1));
    await world.untilSeen("namespace_lost");
    await world.on(world.server, (redis) => redis.swapdb(0, 1));
  }),
  redisFault("another store behind the address", { isShort: true, expected: ["store_id_mismatch"] }, async (world) => {
    const { server } = world;
    await server.kill("SIGKILL");
    const other = await launchRedisServer(world.binary, { port: server.port });
    try {
      await world.onStore((store) => initBackdated(store, NAMESPACE), world.storeUrlAt(other));
      const before = await world.record(other);
      await world.untilSeenAgain("store_id_mismatch");
      const after = await world.record(other);
      // The order of the fields means nothing, and Valkey changes it by itself.
      if (!isDeepStrictEqual(before, after)) throw new Error("the other store was written to");
    } finally {
      await other.dispose();
    }
    await server.start();
  }),
  redisFault("a young old record copied back", { expected: ["rolled_back"] }, async (world) => {
    const record = await world.record();
    await world.work();
    await world.copyBack(record);
    await world.untilSeen("rolled_back");
  }),
  redisFault("an old record copied back", { expected: ["heartbeat_expired"] }, async (world) => {
    await writeRecord(world, ({ changedAtMs }) => ({ changedAtMs: changedAtMs - 2 * BOUNDS.gapMs }));
    await world.untilSeen("heartbeat_expired");
  }),
  redisFault("a record of another month copied back", { expected: ["manual_recovery_required"] }, async (world) => {
    await writeRecord(world, ({ changedAtMs }) => ({ changedAtMs: changedAtMs - MONTH_MS }));
    await world.untilSeen("manual_recovery_required");
    await world.withoutCoordinators(() => recover(world, { isClockChecked: true }));
  }),
  redisFault("a record of an earlier generation", { expected: ["generation_stale"] }, async (world) => {
    await writeRecord(world, ({ generation }) => ({ generation: generation + 10 }));
    await world.work();
    await writeRecord(world, ({ generation }) => ({ generation: generation - 1 }));
    await world.untilSeen("generation_stale");
  }),
  redisFault(
    "the record of one namespace damaged, while importers lease from another one",
    { expected: ["namespace_lost", "store_corrupt"] },
    async (world) => {
      const record = world.key("record");
      const damages: [string, (redis: Redis) => Promise<unknown>][] = [
        ["namespace_lost", (redis) => redis.del(record)],
        ["store_corrupt", (redis) => redis.hset(record, "k", "0".repeat(40))],
      ];
      await withOtherNamespace(world, async (untilLeased) => {
        for (const [code, damage] of damages) {
          await world.on(world.server, damage);
          await world.untilSeenAgain(code);
          await untilLeased();
          // All coordinators run on.
          await recover(world);
          await world.untilLeasing();
        }
      });
    },
  ),
  redisFault("the record of a later release", { expected: ["store_schema_unsupported"] }, (world) =>
    withoutLoss(world, "store_schema_unsupported", async (redis) => {
      await redis.hset(world.key("record"), "v", "3");
      return () => redis.hset(world.key("record"), "v", "2");
    }),
  ),
  redisFault("DEBUG RELOAD of an old dump", { config: RDB_ONLY, expected: ["rolled_back"] }, async (world) => {
    const { server } = world;
    await world.on(server, (redis) => redis.save());
    const dump = join(server.directory, "dump.rdb");
    await cp(dump, `${dump}.old`);
    await world.work();
    await cp(`${dump}.old`, dump);
    await world.on(server, (redis) => redis.call("DEBUG", "RELOAD", "NOSAVE"));
    await world.untilSeen("rolled_back");
  }),
  ...["c", "t", "ep", "g", "p", "n", "rk", "ver", "k"].map((field) =>
    redisFault(`the field ${field} of the record edited`, { expected: ["store_corrupt"] }, (world) =>
      withoutLoss(world, "store_corrupt", async (redis) => {
        const value = await editedField(redis, world.key("record"), field);
        return () => redis.hset(world.key("record"), field, value);
      }),
    ),
  ),
  redisFault(
    "garbage, another type or a time to live in place of the record",
    { isShort: true, expected: ["store_corrupt"] },
    (world) =>
      withoutLoss(world, "store_corrupt", async (redis) => {
        const record = world.key("record");
        const away = `${record}:away`;
        const ways = [
          () => redis.multi().rename(record, away).set(record, "garbage").exec(),
          () => redis.multi().rename(record, away).hset(record, "v", "2", "c", "NaN").exec(),
          () => redis.multi().copy(record, away).expire(record, 3_600).exec(),
        ];
        await oneOf(world.random, ways)();
        return () => redis.multi().del(record).rename(away, record).exec();
      }),
  ),
  redisFault("a ledger of another type", { expected: ["store_corrupt"] }, (world) =>
    withoutLoss(world, "store_corrupt", async (redis) => {
      const ledger = world.key("ledger");
      await redis.multi().rename(ledger, `${ledger}:away`).set(ledger, "garbage").exec();
      return () => redis.multi().del(ledger).rename(`${ledger}:away`, ledger).exec();
    }),
  ),
];

/** An importer leases from a namespace of its own meanwhile. @throws Error when the fault of the world's namespace reached it. */
async function withOtherNamespace(world: RedisWorld, act: (untilLeased: () => Promise<void>) => Promise<void>) {
  const namespace = `other-${Date.now()}`;
  await world.onStore((store) => initBackdated(store, namespace));
  const [received, codes] = [new Received(BOUNDS.epsMs), new Counts()];
  const coordinators = () => world.coordinators.map(({ url }) => url);
  const options = { namespace, coordinators, changesCoordinators: true, pauseMs: 5, received, codes, runCount: 1 };
  const importer = new Importer({ ...options, name: "other" });
  try {
    await act(async () => {
      // The lease in flight may have been granted before.
      const wanted = importer.leaseCount + 2;
      await world.until("the other namespace leases", () => importer.leaseCount >= wanted);
    });
  } finally {
    await importer.stop();
  }
  const reached = [...codes.keys()].filter((code) => /^store_(?!unavailable)/.test(code));
  if (reached.length > 0) throw new Error(`the other namespace was rejected with ${reached.join(", ")}`);
  if (received.problems.length > 0) throw new Error(`in the other namespace: ${received.problems.join("; ")}`);
}

/** Something edited, which is undone afterwards: nothing may have been leased or discarded in between. */
async function withoutLoss(
  world: RedisWorld,
  code: string,
  edit: (redis: Redis) => Promise<() => Promise<unknown>>,
): Promise<void> {
  await world.on(world.server, async (redis) => {
    const undo = await edit(redis);
    const before = await world.ledgerMark();
    await world.untilSeenAgain(code, 2);
    if ((await world.ledgerMark()) !== before) throw new Error(`something was leased although the record was ${code}`);
    await undo();
  });
}

/** Writes the record as no step would, but with a good checksum: what an old copy of it may look like. */
async function writeRecord(
  world: RedisWorld,
  change: (record: NamespaceState) => Partial<NamespaceState>,
): Promise<void> {
  // On one connection: a lease in between would be taken for a rollback.
  await world.on(world.server, async (redis) => {
    const record = readRecord(await redis.hgetall(world.key("record")), NAMESPACE);
    if (isRefusal(record)) throw new Error(`the record is ${record.code}`);
    await redis.hset(world.key("record"), storedFields({ ...record, ...change(record) }));
  });
}

/** Changes the last character of a field, in one step; resolves to what was there. */
async function editedField(redis: Redis, record: string, field: string): Promise<string> {
  const script = `local value = redis.call('HGET', KEYS[1], ARGV[1])
    redis.call('HSET', KEYS[1], ARGV[1], string.sub(value, 1, -2) .. (string.sub(value, -1) == '1' and '2' or '1'))
    return value`;
  return (await redis.eval(script, 1, record, field)) as string;
}
