/**
 * What only the Redis store must do: send once, give up what was lost on the way, and say what ails the server.
 * Guarantees: G4 (docs/guarantees.md).
 */
import { describe, expect, test } from "vitest";
import { untilInfo } from "../../../test/redis/redis-command.js";
import { detach, follow, startReplicatedRedis } from "../../../test/redis/replicated-redis.js";
import { asOperator } from "../../../test/redis/shipped-users.js";
import { ownServerUnavailable, type RedisServer } from "../../../test/redis/test-redis.js";
import type { RedisStore } from "../src/stores/redis/store.js";
import { NAMESPACE, SHORT_BOUNDS, storeIdFrom } from "./commands-for-test.js";
import {
  clientAt,
  newStoreAt,
  openServer,
  ownServer,
  storeAt,
  throughProxy,
  until,
  untilDone,
} from "./redis-for-test.js";
import { inHand, type StoreInHand, withNamespace } from "./store-in-hand.js";

const unavailable = expect.objectContaining({ code: "store_unavailable" });

describe("steps of the same moment", () => {
  test("go together: one look at the server for all of them, and for each namespace", async ({ skip }) => {
    const { url } = await ownServer({}, skip);
    const main = await newStoreAt(url);
    const other = await withNamespace(main.store, { namespace: "other" });
    const redis = clientAt(url);
    const before = await evalshaCalls();
    const leases = Array.from({ length: 50 }, (_, count) => (count % 2 === 0 ? main : other).lease());
    expect(await Promise.all(leases)).toHaveLength(50);
    expect((await evalshaCalls()) - before).toBe(50 + 2);

    async function evalshaCalls(): Promise<number> {
      return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info("commandstats"))?.[1]);
    }
  });

  test("tell the clock as it is when they are sent, however long the scripts took to be loaded", async ({ skip }) => {
    const { url } = await ownServer({}, skip);
    const { storeId } = await newStoreAt(url, { bounds: SHORT_BOUNDS });
    const again = inHand(await storeAt(url, { bounds: SHORT_BOUNDS }), { storeId });
    await clientAt(url).call("CLIENT", "PAUSE", 2 * SHORT_BOUNDS.epsMs);
    expect((await again.lease()).firstRun).toBe(1);
  });

  test("more than the server likes at once go one batch after the other, and none is lost", async ({ skip }) => {
    const { url } = await ownServer({}, skip);
    const { lease, read } = await newStoreAt(url);
    const leases = await Promise.all(Array.from({ length: 600 }, () => lease()));
    expect(new Set(leases.map(({ firstRun }) => firstRun)).size).toBe(600);
    expect((await read()).highWaterMark).toBe(600);
  });
});

describe("an answer", () => {
  test("that is lost with the connection: the run is discarded, the lease is not sent again", async ({ skip }) => {
    const { lease, proxy, direct } = await throughProxy(skip);
    await lease();
    proxy.swallowAnswers();
    const outcome = expect(lease()).rejects.toEqual(unavailable);
    await untilMarkIs(direct, 2);
    proxy.heal();
    await outcome;
    expect((await untilDone(lease)).firstRun).toBe(3);
    expect((await direct.read()).highWaterMark).toBe(3);
  });

  test("that does not come in time: the lease fails by itself, is not sent again, and nobody gets what comes late", async ({
    skip,
  }) => {
    const { lease, proxy, direct } = await throughProxy(skip);
    await lease();
    proxy.holdAnswers();
    await expect(lease()).rejects.toEqual(unavailable);
    expect((await direct.read()).highWaterMark).toBe(2);
    proxy.releaseAnswers();
    expect((await untilDone(lease)).firstRun).toBe(3);
  });

  test("that is late, but in time, is still this step's", async ({ skip }) => {
    const { lease, proxy, direct } = await throughProxy(skip);
    await lease();
    proxy.holdAnswers();
    const late = Promise.all([lease(), lease()]);
    await untilMarkIs(direct, 3);
    proxy.releaseAnswers();
    expect((await late).map(({ firstRun }) => firstRun)).toEqual([2, 3]);
  });

  test.for([1, 40, 300])(
    "that is cut after %i bytes: no step that went with it counts, and none is sent again",
    async (byteCount, { skip }) => {
      const { lease, proxy, direct } = await throughProxy(skip);
      await lease();
      proxy.cutInAnswers(byteCount);
      const outcomes = await Promise.allSettled([lease(), lease(), lease()]);
      expect(outcomes.map((outcome) => outcome.status)).toEqual(Array(3).fill("rejected"));
      for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: unavailable });
      expect((await untilDone(lease)).firstRun).toBe(5);
      expect((await direct.read()).highWaterMark).toBe(5);
    },
  );
});

describe("a server that ails", () => {
  test("that forgot its scripts: refused once, costs no run, and is taught them again", async ({ skip }) => {
    const { url } = await ownServer({}, skip);
    const { lease, read } = await newStoreAt(url);
    const redis = clientAt(url);
    await lease();
    await redis.script("FLUSH");
    await expect(lease()).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("NOSCRIPT"),
    });
    expect((await untilDone(lease)).firstRun).toBe(2);
    await redis.script("FLUSH");
    expect((await read()).highWaterMark).toBe(2);
  });

  test("that is killed and comes back: refused meanwhile, in doubt afterwards, and then leased above all that was", async ({
    skip,
  }) => {
    const server = await ownServer({ appendonly: "yes", appendfsync: "always" }, skip);
    const { lease, jump } = await newStoreAt(server.url, { bounds: SHORT_BOUNDS });
    expect((await lease()).firstRun).toBe(1);
    await server.kill("SIGKILL");
    await expect(lease()).rejects.toEqual(unavailable);
    await server.start();
    await expect(untilDone(lease)).rejects.toMatchObject({ reason: "epoch_changed", generation: 0 });
    const mark = await untilDone(jump);
    expect((await untilDone(lease, ["run_ceiling_reached"])).firstRun).toBe(mark + 1);
  });

  test("that still loads its data: refused until it has", async ({ skip }) => {
    const slow = { "key-load-delay": "10000", "loading-process-events-interval-bytes": "1024" };
    const server = await ownServer({ appendonly: "yes", appendfsync: "always", ...slow }, skip);
    const { lease } = await newStoreAt(server.url);
    await lease();
    const redis = clientAt(server.url);
    for (let count = 0; count < 60; count++) await redis.set(`filler-${count}`, "x".repeat(1_000));
    redis.disconnect();
    await server.kill("SIGKILL");
    const loaded = server.start();
    await expect(untilDone(lease)).rejects.toMatchObject({ reason: "epoch_changed" });
    await loaded;
  });

  test("that is busy with somebody's endless script: refused, and leased again when it is free", async ({ skip }) => {
    const { url } = await ownServer({ "lua-time-limit": "10" }, skip);
    const { lease } = await newStoreAt(url);
    await lease();
    const [endless, killer] = [clientAt(url), clientAt(url)];
    await Promise.all([endless.ping(), killer.ping()]);
    const ended = expect(endless.eval("while true do end", 0)).rejects.toThrow(/killed/i);
    await expect(lease()).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("BUSY"),
    });
    await killer.script("KILL");
    await ended;
    expect((await untilDone(lease)).firstRun).toBe(2);
  });

  test("that is not there: said at once, with its address", async () => {
    await expect(storeAt("redis://127.0.0.1:1")).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/127\.0\.0\.1:1.*ECONNREFUSED/),
    });
  });

  test("that asks for a password: said what to do, and the password is not shown", async ({ skip }) => {
    const { port } = await openServer("it asks for the default user's password", { requirepass: "right" }, skip);
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
    const { lease } = await newStoreAt(url);
    const redis = clientAt(url);
    await redis.config("SET", "maxmemory", "1");
    await expect(lease()).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("memory"),
    });
    await redis.config("SET", "maxmemory", "0");
    expect((await untilDone(lease)).firstRun).toBe(1);
  });

  test("that is a replica: refused, with the hint to use the master; and what it followed meanwhile is for an operator", async ({
    skip,
  }) => {
    const { url } = await ownServer({}, skip);
    const { store, commands, lease, jump } = await newStoreAt(url);
    const redis = clientAt(url);
    await lease();
    await redis.replicaof("127.0.0.1", 1);
    await expect(lease()).rejects.toMatchObject({
      code: "store_is_replica",
      message: expect.stringContaining("master"),
    });
    await redis.replicaof("NO", "ONE");
    await expect(untilDone(lease)).rejects.toMatchObject({
      code: "manual_recovery_required",
      message: expect.stringContaining("followed another one"),
    });
    await expect(store.step(NAMESPACE, commands.recover())).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/ACL does not let .* recover and move need the operator's user/),
    });
    await (await storeAt(asOperator(url))).step(NAMESPACE, commands.recover());
    expect(await jump()).toBeGreaterThan(1);
  });

  test("that a replica followed is for an operator, whose error names the replica", async ({ skip }) => {
    const reason = ownServerUnavailable();
    if (reason !== undefined) skip(reason);
    const { master, replicas } = await startReplicatedRedis({ nodeCount: 2 });
    const [replica] = replicas as [RedisServer];
    await detach(replica);
    const { lease } = await newStoreAt(master.url);
    await lease();
    await follow(replica, master);
    await expect(lease()).rejects.toMatchObject({ code: "unexpected_replicas" });
    await detach(replica);
    await untilInfo(master, { connected_slaves: "0" });
    await expect(lease()).rejects.toMatchObject({
      code: "manual_recovery_required",
      message: expect.stringContaining("a replica was attached to the server"),
    });
  });

  test("that refuses the database: nothing is leased from another one, at the start or after a reconnect", async ({
    skip,
  }) => {
    const { url, port } = await openServer("the shipped users may not choose a database", {}, skip);
    const admin = clientAt(url);
    await expect(storeAt(`${url}/9999`)).rejects.toEqual(unavailable);
    const other = await newStoreAt(`${url}/0`);
    await admin.acl("SETUSER", "cn", "on", ">pw", "~*", "+@all");
    const { lease } = await newStoreAt(`redis://cn:pw@127.0.0.1:${port}/5`);
    expect((await lease()).firstRun).toBe(1);
    await admin.acl("SETUSER", "cn", "-select");
    await admin.client("KILL", "USER", "cn");
    for (let attempt = 0; attempt < 5; attempt++) {
      await expect(lease()).rejects.toEqual(unavailable);
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    expect((await other.read()).highWaterMark).toBe(0);
    await admin.acl("SETUSER", "cn", "+select");
    expect((await untilDone(lease)).firstRun).toBe(2);
  });

  test("databases and prefixes are separate stores", async ({ skip }) => {
    const { url } = await openServer("the shipped users have one database and one prefix", {}, skip);
    const stores: RedisStore[] = await Promise.all(
      [`${url}/0`, `${url}/3`, `${url}/0?prefix=other:`].map((at) => storeAt(at)),
    );
    const made: StoreInHand[] = [];
    for (const store of stores) {
      expect(await store.listNamespaces()).toEqual([]);
      made.push(await withNamespace(store));
    }
    for (const { lease } of made) expect((await lease()).firstRun).toBe(1);
  });
});

describe("the other nodes", () => {
  test("that acknowledged a step are counted, and waited for no longer than told", async ({ skip }) => {
    const master = await ownServer({ "repl-diskless-sync-delay": "0" }, skip);
    const follower = await ownServer({}, skip);
    const replica = clientAt(follower.url);
    await replica.replicaof("127.0.0.1", master.port);
    await until(async () => /master_link_status:up/.test(await replica.info("replication")));
    const store = await storeAt(master.url, { quorumTimeoutMs: 1_000 });
    const { commands } = await withTwoNodes(store);
    const lease = () => store.step(NAMESPACE, commands.lease());
    expect((await lease()).acknowledgedCount).toBe(1);
    await follower.kill("SIGSTOP");
    try {
      expect(await lease()).toMatchObject({ acknowledgedCount: 0, after: { highWaterMark: 2 } });
    } finally {
      await follower.kill("SIGCONT");
    }
    await until(async () => (await lease()).acknowledgedCount === 1);
  });
});

async function withTwoNodes(store: RedisStore): Promise<StoreInHand> {
  const made = inHand(store, { storeId: storeIdFrom(1) });
  await store.step(NAMESPACE, made.commands.init({ nodeCount: 2 }));
  return made;
}

async function untilMarkIs({ read }: StoreInHand, mark: number): Promise<void> {
  await until(async () => (await read()).highWaterMark >= mark);
}
