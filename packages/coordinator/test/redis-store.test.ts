/** What only the Redis store must do: send once, trust no key that another hand has touched, and say what ails the server. */
import { randomUUID } from "node:crypto";
import { RUN_MAX } from "@callnumber/protocol/codec";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type FaultyProxy, startFaultyProxy } from "../../../test/redis/faulty-proxy.js";
import {
  ownServerUnavailable,
  type RedisServer,
  sharedRedis,
  startRedisServer,
} from "../../../test/redis/test-redis.js";
import { RedisStore } from "../src/stores/redis-store.js";
import { parseStoreUrl } from "../src/stores/store-url.js";
import { leaseCommand, reportCommand, storeIdFrom } from "./store-contract.js";

const closing: (() => Promise<unknown> | unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function storeAt(url: string): Promise<RedisStore> {
  const address = parseStoreUrl(url);
  if (address.kind !== "redis") throw new Error(`${url} is no Redis`);
  const store = await RedisStore.open(address);
  closing.push(() => store.close());
  return store;
}

function withPrefix(url: string, prefix: string): string {
  const full = new URL(url);
  full.searchParams.set("prefix", prefix);
  return full.href;
}

describe("keys that another hand has touched", () => {
  let store: RedisStore;
  let redis: Redis;
  let prefix: string;
  const key = (name: string) => `${prefix}{main}:${name}`;

  beforeEach(async () => {
    prefix = `test-${randomUUID()}:`;
    redis = new Redis(sharedRedis().url);
    closing.push(() => redis.disconnect());
    store = await storeAt(withPrefix(sharedRedis().url, prefix));
    await store.createNamespace("main", storeIdFrom(1));
    await store.lease("main", leaseCommand({ runCount: 5 }));
  });

  const edits: [string, string, (redis: Redis) => Promise<unknown>][] = [
    ["the mark is no number", "store_corrupt", (r) => r.hset(key("record"), "c", "x")],
    ["the mark is NaN", "store_corrupt", (r) => r.hset(key("record"), "c", "nan")],
    ["the mark is in hexadecimal", "store_corrupt", (r) => r.hset(key("record"), "c", "0x10")],
    ["the mark has an exponent", "store_corrupt", (r) => r.hset(key("record"), "c", "1e3")],
    ["the mark is negative", "store_corrupt", (r) => r.hset(key("record"), "c", "-1")],
    ["the mark is beyond the run space", "store_corrupt", (r) => r.hset(key("record"), "c", String(RUN_MAX + 1))],
    ["the mark is missing", "store_corrupt", (r) => r.hdel(key("record"), "c")],
    ["the time is missing", "store_corrupt", (r) => r.hdel(key("record"), "t")],
    ["the version is 8", "store_corrupt", (r) => r.hset(key("record"), "ver", "8")],
    ["the store id is something else", "store_corrupt", (r) => r.hset(key("record"), "sid", "x")],
    ["the namespace is another", "store_corrupt", (r) => r.hset(key("record"), "ns", "other")],
    ["the schema is missing", "store_corrupt", (r) => r.hdel(key("record"), "v")],
    ["the schema is of the future", "store_unknown_schema", (r) => r.hset(key("record"), "v", "2")],
    ["the record is to expire", "store_corrupt", (r) => r.expire(key("record"), 1000)],
    ["the record is a string", "store_corrupt", (r) => r.set(key("record"), "6")],
    ["the record is gone", "namespace_not_initialised", (r) => r.del(key("record"))],
    ["the mark lies below the ledger", "store_went_back", (r) => r.hset(key("record"), "c", "4")],
    ["the ledger is a string", "store_corrupt", (r) => r.set(key("ledger"), "x")],
    ["the holders are a list", "store_corrupt", (r) => r.del(key("holders")).then(() => r.lpush(key("holders"), "x"))],
  ];

  test.each(edits)("%s: %s, and nothing is changed", async (_, code, edit) => {
    await edit(redis);
    const before = await contents();
    await expect(store.lease("main", leaseCommand())).rejects.toMatchObject({ code });
    expect(await contents()).toEqual(before);
  });

  test("a ledger without its record can't be begun anew", async () => {
    await redis.del(key("record"));
    await expect(store.createNamespace("main", storeIdFrom(1))).rejects.toMatchObject({ code: "store_corrupt" });
    expect(await redis.exists(key("record"))).toBe(0);
  });

  test("reports that are a list are refused, and so are damaged ones", async () => {
    await redis.lpush(key("reports"), "x");
    await expect(store.report("main", 1, reportCommand())).rejects.toMatchObject({ code: "store_corrupt" });
    await redis.del(key("reports"));
    await redis.hset(key("reports"), "0", "cut");
    await expect(store.report("main", 1, reportCommand())).rejects.toMatchObject({ code: "store_corrupt" });
  });

  test.each(["nan", "NaN", "inf", "1e3", "-1", "1.5", "", " 1", "0x10", "9007199254740993"])(
    "%j as a number in any script changes nothing",
    async (bad) => {
      const before = await contents();
      // Misuse is our own fault: it must be loud, and free of cost.
      await expect(store.lease("main", { ...leaseCommand(), runCount: bad as never })).rejects.toThrow(
        "broken invariant: MISUSE",
      );
      await expect(store.lease("main", { ...leaseCommand(), floor: bad as never })).rejects.toThrow(
        "broken invariant: MISUSE",
      );
      await expect(store.firstLeaseSince("main", bad as never)).rejects.toThrow("broken invariant: MISUSE");
      expect(await contents()).toEqual(before);
    },
  );

  test("all keys of a namespace lie in one hash slot", async () => {
    await store.report("main", 1, reportCommand());
    const keys = await redis.keys(`${prefix}{*`);
    expect(keys.sort()).toEqual(["holders", "ledger", "record", "reports"].map(key));
  });

  test("a server that forgot its scripts is taught them again", async () => {
    await redis.script("FLUSH");
    expect((await store.lease("main", leaseCommand())).firstRun).toBe(6);
    await redis.script("FLUSH");
    expect((await store.readNamespace("main")).highWaterMark).toBe(6);
  });

  test("each process stands once among the holders, however many runs it takes", async () => {
    for (let lease = 0; lease < 10; lease++) await store.lease("main", leaseCommand());
    await store.lease("main", leaseCommand({ holder: { name: "other", host: "h", pid: 1, labels: {} } }));
    expect(await redis.hlen(key("holders"))).toBe(4);
    expect((await store.findLease("main", 16))?.holder.name).toBe("other");
  });

  async function contents(): Promise<unknown> {
    const keys = (await redis.keys(`${prefix}*`)).sort();
    return Promise.all(keys.map(async (name) => [name, await redis.dumpBuffer(name), (await redis.ttl(name)) > 0]));
  }
});

describe("a server that ails", () => {
  let server: RedisServer;

  async function ownServer(config: Record<string, string>, skip: (reason: string) => never): Promise<RedisServer> {
    const reason = ownServerUnavailable();
    if (reason !== undefined) skip(reason);
    server = await startRedisServer({ config });
    return server;
  }

  async function throughProxy(
    skip: (reason: string) => never,
  ): Promise<{ store: RedisStore; proxy: FaultyProxy; direct: RedisStore }> {
    const { port } = await ownServer({}, skip);
    const proxy = await startFaultyProxy({ host: "127.0.0.1", port });
    closing.push(() => proxy.close());
    const direct = await storeAt(`redis://127.0.0.1:${port}`);
    await direct.createNamespace("main", storeIdFrom(1));
    return { store: await storeAt(`redis://127.0.0.1:${proxy.port}`), proxy, direct };
  }

  test("whose answer is lost with the connection: the run is burnt, the lease is not sent again", async ({ skip }) => {
    const { store, proxy, direct } = await throughProxy(skip);
    await store.lease("main", leaseCommand());
    proxy.swallowAnswers();
    const lost = store.lease("main", leaseCommand());
    const outcome = expect(lost).rejects.toMatchObject({ code: "store_unavailable" });
    await untilMarkIs(direct, 2);
    proxy.heal();
    await outcome;
    const again = await untilLeased(store);
    expect(again.firstRun).toBe(3);
    expect((await direct.readNamespace("main")).highWaterMark).toBe(3);
  });

  test("that never answers: the lease fails by itself, is not sent again, and the connection is made anew", async ({
    skip,
  }) => {
    const { store, proxy, direct } = await throughProxy(skip);
    await store.lease("main", leaseCommand());
    proxy.swallowAnswers();
    await expect(store.lease("main", leaseCommand())).rejects.toMatchObject({ code: "store_unavailable" });
    expect((await direct.readNamespace("main")).highWaterMark).toBe(2);
    proxy.heal();
    expect((await untilLeased(store)).firstRun).toBe(3);
  });

  test("that is killed and comes back: refused meanwhile, leased again afterwards, by the same store", async ({
    skip,
  }) => {
    const { url } = await ownServer({ appendonly: "yes", appendfsync: "always" }, skip);
    const store = await storeAt(url);
    await store.createNamespace("main", storeIdFrom(1));
    expect((await store.lease("main", leaseCommand())).firstRun).toBe(1);
    await server.kill("SIGKILL");
    await expect(store.lease("main", leaseCommand())).rejects.toMatchObject({ code: "store_unavailable" });
    await server.start();
    expect((await untilLeased(store)).firstRun).toBe(2);
  });

  test("that is not there: said at once, with its address", async () => {
    await expect(storeAt("redis://127.0.0.1:1")).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/127\.0\.0\.1:1.*ECONNREFUSED/),
    });
  });

  test("that asks for a password: said what to do, and the password is not shown", async ({ skip }) => {
    const { port } = await ownServer({ requirepass: "right" }, skip);
    await expect(storeAt(`redis://127.0.0.1:${port}`)).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("password"),
    });
    const wrong = await storeAt(`redis://:geheim@127.0.0.1:${port}`).catch((error: Error) => error);
    expect(wrong).toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("refuses user or password"),
    });
    expect(String(wrong)).not.toContain("geheim");
    const right = await storeAt(`redis://:right@127.0.0.1:${port}`);
    expect(await right.listNamespaces()).toEqual([]);
  });

  test("that has no memory left: refused, and the mark stays", async ({ skip }) => {
    const { url } = await ownServer({}, skip);
    const store = await storeAt(url);
    await store.createNamespace("main", storeIdFrom(1));
    const redis = new Redis(url);
    closing.push(() => redis.disconnect());
    await redis.config("SET", "maxmemory", "1");
    await expect(store.lease("main", leaseCommand())).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("memory"),
    });
    await redis.config("SET", "maxmemory", "0");
    expect((await store.lease("main", leaseCommand())).firstRun).toBe(1);
  });

  test("that is a replica: refused, with the hint to use the master", async ({ skip }) => {
    const { url, port } = await ownServer({}, skip);
    const store = await storeAt(url);
    await store.createNamespace("main", storeIdFrom(1));
    const redis = new Redis(url);
    closing.push(() => redis.disconnect());
    await redis.replicaof("127.0.0.1", port === 1 ? 2 : 1);
    await expect(store.lease("main", leaseCommand())).rejects.toMatchObject({ code: "store_unavailable" });
    await redis.replicaof("NO", "ONE");
    expect((await store.lease("main", leaseCommand())).firstRun).toBe(1);
  });

  test("that refuses the database: nothing is leased from another one, at the start or after a reconnect", async ({
    skip,
  }) => {
    const { url, port } = await ownServer({}, skip);
    const admin = new Redis(url);
    closing.push(() => admin.disconnect());
    await expect(storeAt(`${url}/9999`)).rejects.toMatchObject({ code: "store_unavailable" });
    const other = await storeAt(`${url}/0`);
    await other.createNamespace("main", storeIdFrom(1));
    await admin.acl("SETUSER", "cn", "on", ">pw", "~*", "+@all");
    const store = await storeAt(`redis://cn:pw@127.0.0.1:${port}/5`);
    await store.createNamespace("main", storeIdFrom(100));
    expect((await store.lease("main", leaseCommand())).firstRun).toBe(100);
    await admin.acl("SETUSER", "cn", "-select");
    await admin.client("KILL", "USER", "cn");
    for (let attempt = 0; attempt < 5; attempt++) {
      await expect(store.lease("main", leaseCommand())).rejects.toMatchObject({ code: "store_unavailable" });
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    expect((await other.readNamespace("main")).highWaterMark).toBe(0);
    await admin.acl("SETUSER", "cn", "+select");
    expect((await untilLeased(store)).firstRun).toBe(101);
  });

  test("databases and prefixes are separate stores", async ({ skip }) => {
    const { url } = await ownServer({}, skip);
    const stores = await Promise.all([`${url}/0`, `${url}/3`, `${url}/0?prefix=other:`].map(storeAt));
    for (const store of stores) {
      expect(await store.listNamespaces()).toEqual([]);
      await store.createNamespace("main", storeIdFrom(1));
    }
    for (const store of stores) expect((await store.lease("main", leaseCommand())).firstRun).toBe(1);
  });
});

async function untilMarkIs(store: RedisStore, mark: number): Promise<void> {
  while ((await store.readNamespace("main")).highWaterMark < mark)
    await new Promise((resolve) => setTimeout(resolve, 5));
}

/** The connection comes back by itself; until then every try is refused, and costs no run. */
async function untilLeased(store: RedisStore) {
  for (;;) {
    try {
      return await store.lease("main", leaseCommand());
    } catch (error) {
      expect(error).toMatchObject({ code: "store_unavailable" });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
