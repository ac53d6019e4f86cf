/**
 * Faults of a single server: crashes, lost and restored states, other hands. The numbers are those of the design's list.
 * Guarantees: G3, G5 (docs/guarantees.md).
 */
import { cp, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { keptFields, readRecord } from "../../packages/coordinator/src/guard/record.js";
import { isRefusal } from "../../packages/coordinator/src/guard/refusal.js";
import { launchRedisServer } from "../redis/redis-server.js";
import { type Fault, fault } from "./fault.js";
import { recover } from "./recovering.js";
import { NAMESPACE, type World } from "./world.js";

const RDB_ONLY = { save: "3600 1", appendonly: "no" };
const NOTHING_KEPT = { save: '""', appendonly: "no" };

export const FAULTS_OF_ONE_SERVER: readonly Fault[] = [
  fault({
    number: 1,
    name: "kill -9, AOF everysec",
    expected: ["store_epoch_changed"],
    inject: async ({ server }) => {
      await server.kill("SIGKILL");
      await server.start();
    },
  }),
  fault({
    number: 3,
    name: "power loss: the AOF cut back to what was synced",
    expected: ["store_epoch_changed"],
    inject: async (world) => {
      const { server } = world;
      const synced = await aofSize(server.directory);
      await world.work();
      await server.kill("SIGKILL");
      await cutAof(server.directory, synced);
      await server.start();
    },
  }),
  fault({
    number: 4,
    name: "kill -9, RDB only",
    config: RDB_ONLY,
    expected: ["store_epoch_changed"],
    inject: async (world) => {
      const { server } = world;
      await world.on(server, (redis) => redis.save());
      await world.work();
      await server.kill("SIGKILL");
      await server.start();
    },
  }),
  fault({
    number: 5,
    name: "no persistence, restart",
    config: NOTHING_KEPT,
    expected: ["store_emptied"],
    inject: async (world) => {
      await world.server.kill("SIGKILL");
      await world.server.start();
      await world.untilSeen("store_emptied");
      await recover(world);
    },
  }),
  fault({
    number: 6,
    name: "appendonly switched on in the config, restart",
    config: RDB_ONLY,
    expected: ["store_emptied"],
    inject: async (world) => {
      const { server } = world;
      await world.on(server, (redis) => redis.save());
      await server.kill("SIGKILL");
      await rm(join(server.directory, "appendonlydir"), { recursive: true, force: true });
      const path = join(server.directory, "redis.conf");
      const text = await readFile(path, "utf8");
      await writeFile(path, text.replace("appendonly no", "appendonly yes"));
      await server.start();
      await world.untilSeen("store_emptied");
      await recover(world);
    },
  }),
  fault({
    number: 7,
    name: "AOF cut at a random byte",
    expected: ["store_epoch_changed"],
    inject: async (world) => {
      const { server, random } = world;
      const earlier = await aofSize(server.directory);
      await world.work();
      await server.kill("SIGKILL");
      const now = await aofSize(server.directory);
      await cutAof(server.directory, earlier + Math.floor(random() * (now - earlier)));
      await server.start();
    },
  }),
  fault({
    number: 8,
    name: "an older state restored",
    expected: ["store_epoch_changed"],
    inject: async (world) => {
      const { server } = world;
      const snapshot = await world.snapshot();
      await world.work();
      await server.kill("SIGKILL");
      await world.restore(snapshot);
      await server.start();
    },
  }),
  fault({
    number: 9,
    name: "one backup restored twice, across jumps",
    expected: ["store_epoch_changed"],
    inject: async (world) => {
      const { server } = world;
      const snapshot = await world.snapshot();
      for (let time = 0; time < 2; time++) {
        await world.work();
        await server.kill("SIGKILL");
        await world.restore(snapshot);
        await server.start();
        await world.untilLeasing();
      }
    },
  }),
  fault({
    number: 11,
    name: "FLUSHALL, DEL or RENAME",
    expected: ["store_emptied"],
    inject: async (world) => {
      const record = world.key("record");
      const ways = [
        (redis: Redis) => redis.flushall(),
        (redis: Redis) => redis.del(record),
        (redis: Redis) => redis.rename(record, `${record}:away`),
      ];
      await world.on(world.server, async (redis) => await oneOf(world, ways)(redis));
      await world.untilSeen("store_emptied");
      await recover(world);
    },
  }),
  fault({
    number: 12,
    name: "SWAPDB, and back",
    expected: ["store_emptied"],
    inject: async (world) => {
      await world.on(world.server, (redis) => redis.swapdb(0, 1));
      await world.untilSeen("store_emptied");
      await world.on(world.server, (redis) => redis.swapdb(0, 1));
    },
  }),
  fault({
    number: 13,
    name: "another store behind the address",
    expected: ["store_replaced"],
    inject: async (world) => {
      const { server } = world;
      await server.kill("SIGKILL");
      const other = await launchRedisServer(world.binary, { port: server.port });
      try {
        await world.onStore((store) => world.initOther(store), other);
        const before = await world.on(other, (redis) => redis.hgetall(world.key("record")));
        await world.untilSeen("store_replaced");
        const after = await world.on(other, (redis) => redis.hgetall(world.key("record")));
        if (JSON.stringify(before) !== JSON.stringify(after)) throw new Error("the other store was written to");
      } finally {
        await other.dispose();
      }
      await server.start();
    },
  }),
  fault({
    number: 14,
    name: "a young old record copied back",
    expected: ["store_went_back"],
    inject: async (world) => {
      const record = await world.on(world.server, (redis) => redis.hgetall(world.key("record")));
      await world.work();
      await world.on(world.server, (redis) => redis.hset(world.key("record"), record));
      await world.untilSeen("store_went_back");
    },
  }),
  fault({
    number: 14,
    name: "an old record copied back",
    expected: ["store_silent"],
    inject: async (world) => {
      const found = await world.on(world.server, (redis) => redis.hgetall(world.key("record")));
      const record = readRecord(found, NAMESPACE);
      if (isRefusal(record)) throw new Error(`the record is ${record.word}`);
      await world.work();
      const old = keptFields({ ...record, changedAtMs: record.changedAtMs - 7_000 });
      await world.on(world.server, (redis) => redis.hset(world.key("record"), old));
      await world.untilSeen("store_silent");
    },
  }),
  fault({
    number: 15,
    name: "DEBUG RELOAD of an old dump",
    config: RDB_ONLY,
    expected: ["store_went_back"],
    inject: async (world) => {
      const { server } = world;
      await world.on(server, (redis) => redis.save());
      const dump = join(server.directory, "dump.rdb");
      await cp(dump, `${dump}.old`);
      await world.work();
      await cp(`${dump}.old`, dump);
      await world.on(server, (redis) => redis.call("DEBUG", "RELOAD", "NOSAVE"));
      await world.untilSeen("store_went_back");
    },
  }),
  ...["c", "t", "ep", "g", "p", "n", "rk", "ver", "k"].map((field) =>
    fault({
      number: 16,
      name: `the field ${field} of the record edited`,
      expected: ["store_corrupt"],
      inject: (world) =>
        withoutLoss(world, "store_corrupt", async (redis) => {
          const value = await editedField(redis, world.key("record"), field);
          return () => redis.hset(world.key("record"), field, value);
        }),
    }),
  ),
  fault({
    number: 16,
    name: "garbage, another type or a time to live in place of the record",
    expected: ["store_corrupt"],
    inject: (world) =>
      withoutLoss(world, "store_corrupt", async (redis) => {
        const record = world.key("record");
        const away = `${record}:away`;
        const ways = [
          () => redis.multi().rename(record, away).set(record, "garbage").exec(),
          () => redis.multi().rename(record, away).hset(record, "v", "2", "c", "NaN").exec(),
          () => redis.multi().copy(record, away).expire(record, 3_600).exec(),
        ];
        await oneOf(world, ways)();
        return () => redis.multi().del(record).rename(away, record).exec();
      }),
  }),
  fault({
    number: 16,
    name: "a ledger of another type",
    expected: ["store_corrupt"],
    inject: (world) =>
      withoutLoss(world, "store_corrupt", async (redis) => {
        const ledger = world.key("ledger");
        await redis.multi().rename(ledger, `${ledger}:away`).set(ledger, "garbage").exec();
        return () => redis.multi().del(ledger).rename(`${ledger}:away`, ledger).exec();
      }),
  }),
  fault({
    number: 27,
    name: "CLIENT KILL of every connection",
    expected: ["store_unavailable"],
    inject: async (world) => {
      for (let time = 0; time < 5; time++) {
        await world.on(world.server, (redis) => redis.call("CLIENT", "KILL", "TYPE", "normal"));
        await world.work(5);
      }
    },
  }),
  fault({
    number: 34,
    name: "OOM, NOSCRIPT or BUSY",
    expected: ["store_unavailable"],
    inject: async (world) => {
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
      await world.on(world.server, oneOf(world, ways));
    },
  }),
];

/** Something edited, which another hand puts right again: nothing may have been leased or burnt in between. */
async function withoutLoss(
  world: World,
  code: string,
  edit: (redis: Redis) => Promise<() => Promise<unknown>>,
): Promise<void> {
  await world.on(world.server, async (redis) => {
    const undo = await edit(redis);
    const before = await world.ledgerMark();
    await world.untilSeen(code);
    await world.untilSeen(code);
    if ((await world.ledgerMark()) !== before) throw new Error(`something was leased although the record was ${code}`);
    await undo();
  });
}

/** Changes the last character of a field, in one step; resolves to what stood there. */
async function editedField(redis: Redis, record: string, field: string): Promise<string> {
  const script = `local value = redis.call('HGET', KEYS[1], ARGV[1])
    redis.call('HSET', KEYS[1], ARGV[1], string.sub(value, 1, -2) .. (string.sub(value, -1) == '1' and '2' or '1'))
    return value`;
  return (await redis.eval(script, 1, record, field)) as string;
}

function oneOf<T>(world: World, ways: readonly T[]): T {
  return ways[Math.floor(world.random() * ways.length)] as T;
}

/** The newest of the AOF's files: the one that grows. */
async function growingAof(directory: string): Promise<string> {
  const folder = join(directory, "appendonlydir");
  const names = (await readdir(folder)).filter((name) => name.endsWith(".incr.aof")).sort();
  return join(folder, names.at(-1) as string);
}

async function aofSize(directory: string): Promise<number> {
  return (await stat(await growingAof(directory))).size;
}

async function cutAof(directory: string, byteCount: number): Promise<void> {
  await truncate(await growingAof(directory), byteCount);
}
