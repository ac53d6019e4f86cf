/**
 * The Redis store sends each step once, discards what was lost on the way, and reports what is wrong with the server.
 * Guarantees: G4 (docs/guarantees.md).
 */
import { beforeEach, expect, test, vi } from "vitest";
import { untilInfo } from "../../../test/redis/redis-command.js";
import { detach, follow, startReplicatedRedis } from "../../../test/redis/replicated-redis.js";
import { asOperator } from "../../../test/redis/shipped-users.js";
import { type RedisServer, startRedisServer } from "../../../test/redis/test-redis.js";
import { isApplied } from "../src/guard/step-store.js";
import { commandsFor, NAMESPACE, SHORT_BOUNDS, storeIdFrom } from "./commands-for-test.js";
import { clientAt, needsOwnServer, newStoreAt, storeAt, throughProxy, until, untilDone } from "./redis-for-test.js";
import { preparedFor, stepOn } from "./steps-for-test.js";
import { inHand, type StoreInHand, withNamespace } from "./store-in-hand.js";

beforeEach(needsOwnServer);

const unavailable = expect.objectContaining({ code: "store_unavailable" });
const unavailableBecause = (reason: string | RegExp) => ({
  code: "store_unavailable",
  message: expect.stringMatching(reason),
});

test("a lease whose reply is lost with the connection is not sent again, and its run is discarded", async () => {
  const { lease, proxy, direct } = await throughProxy();
  await lease();
  proxy.holdAnswers();
  const outcome = expect(lease()).rejects.toEqual(unavailable);
  await untilMarkIs(direct, 2);
  proxy.heal();
  await outcome;
  expect((await untilDone(lease)).firstRun).toBe(3);
  expect((await direct.read()).highWaterMark).toBe(3);
});

test("a lease whose reply is too late fails and is not sent again, and no later step gets the late reply", async () => {
  const { lease, proxy, direct } = await throughProxy();
  await lease();
  proxy.holdAnswers();
  await expect(lease()).rejects.toEqual(unavailable);
  expect((await direct.read()).highWaterMark).toBe(2);
  proxy.releaseAnswers();
  expect((await untilDone(lease)).firstRun).toBe(3);
});

test("a lease whose reply is late, but in time, succeeds", async () => {
  const { lease, proxy, direct } = await throughProxy();
  await lease();
  proxy.holdAnswers();
  const late = Promise.all([lease(), lease()]);
  await untilMarkIs(direct, 3);
  proxy.releaseAnswers();
  expect((await late).map(({ firstRun }) => firstRun)).toEqual([2, 3]);
});

test.each([1, 30, 60])(
  "a lease whose reply is cut after %i bytes fails with all steps of its batch, none of which is sent again",
  async (byteCount) => {
    const { lease, proxy, direct } = await throughProxy();
    await lease();
    proxy.cutInAnswers(byteCount);
    for (const outcome of await Promise.allSettled([lease(), lease(), lease()]))
      expect(outcome).toMatchObject({ status: "rejected", reason: unavailable });
    expect((await untilDone(lease)).firstRun).toBe(5);
    expect((await direct.read()).highWaterMark).toBe(5);
  },
);

test("a lease that is longer on its way than clocks may differ changes nothing, and is sent again with the clock of then", async () => {
  const { url } = await startRedisServer();
  const { storeId, commands } = await newStoreAt(url, { bounds: SHORT_BOUNDS });
  const again = inHand(await storeAt(url), { storeId, bounds: SHORT_BOUNDS });
  const prepared = await preparedFor(again.store, NAMESPACE, commands.lease(), { bounds: SHORT_BOUNDS });
  await clientAt(url).call("CLIENT", "PAUSE", 2 * SHORT_BOUNDS.epsMs);
  const late = await again.store.apply(NAMESPACE, ...prepared);
  expect(isApplied(late)).toBe(false);
  expect((await again.read()).highWaterMark).toBe(0);
  await clientAt(url).call("CLIENT", "PAUSE", 2 * SHORT_BOUNDS.epsMs);
  expect((await again.lease()).firstRun).toBe(1);
});

test("a lease fails without a lost run at a server that forgot its scripts, which are then loaded again", async () => {
  const { url } = await startRedisServer();
  const { lease, read } = await newStoreAt(url);
  const redis = clientAt(url);
  await lease();
  await redis.script("FLUSH");
  await expect(lease()).rejects.toMatchObject(unavailableBecause("NOSCRIPT"));
  expect((await untilDone(lease)).firstRun).toBe(2);
  await redis.script("FLUSH");
  expect((await read()).highWaterMark).toBe(2);
});

test("a lease fails at a server that was killed, and continues only above a recovery", async () => {
  const server = await startRedisServer({ config: { appendonly: "yes", appendfsync: "always" } });
  const { lease, skipAhead } = await newStoreAt(server.url, { bounds: SHORT_BOUNDS });
  expect((await lease()).firstRun).toBe(1);
  await server.kill("SIGKILL");
  await expect(lease()).rejects.toEqual(unavailable);
  await server.start();
  await expect(untilDone(lease)).rejects.toMatchObject({ reason: "epoch_changed", generation: 0 });
  const mark = await untilDone(skipAhead);
  expect((await untilDone(lease, ["run_ceiling_reached"])).firstRun).toBe(mark + 1);
});

test("a lease fails at a server that still loads its data", async () => {
  const slow = { "key-load-delay": "10000", "loading-process-events-interval-bytes": "1024" };
  const server = await startRedisServer({ config: { appendonly: "yes", appendfsync: "always", ...slow } });
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

test("a lease fails at a server that is busy with an endless script, until that is killed", async () => {
  const { url } = await startRedisServer({ config: { "lua-time-limit": "10" } });
  const { lease } = await newStoreAt(url);
  await lease();
  const [endless, killer] = [clientAt(url), clientAt(url)];
  await Promise.all([endless.ping(), killer.ping()]);
  const ended = expect(endless.eval("while true do end", 0)).rejects.toThrow(/killed/i);
  await expect(lease()).rejects.toMatchObject(unavailableBecause("BUSY"));
  await killer.script("KILL");
  await ended;
  expect((await untilDone(lease)).firstRun).toBe(2);
});

test("a lease fails at a server without memory, and the mark stays", async () => {
  const { url } = await startRedisServer();
  const { lease } = await newStoreAt(url);
  const redis = clientAt(url);
  await redis.config("SET", "maxmemory", "1");
  await expect(lease()).rejects.toMatchObject(unavailableBecause("memory"));
  await redis.config("SET", "maxmemory", "0");
  expect((await untilDone(lease)).firstRun).toBe(1);
});

test("a lease fails at a replica, and needs an operator when that is a master again", async () => {
  const { url } = await startRedisServer();
  const { store, commands, lease, skipAhead } = await newStoreAt(url);
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
  // The connection may still be on its way again.
  const notByCoordinator = unavailableBecause(/ACL does not let .* recover and move need the operator's user/);
  await vi.waitFor(() => expect(stepOn(store, NAMESPACE, commands.recover())).rejects.toMatchObject(notByCoordinator));
  await stepOn(await storeAt(asOperator(url)), NAMESPACE, commands.recover());
  expect(await skipAhead()).toBeGreaterThan(1);
});

test("a lease fails at a server that an uncounted replica follows, and needs an operator when the replica is gone", async () => {
  const { master, replicas } = await startReplicatedRedis({ nodeCount: 2 });
  const [replica] = replicas as [RedisServer];
  await detach(replica);
  const { lease, step, commands, store } = await newStoreAt(master.url);
  await lease();
  await follow(replica, master);
  await expect(lease()).rejects.toMatchObject({ code: "unexpected_replicas" });
  expect((await step(commands.suspect(1))).after.epoch).toBe("-:-:attached");
  expect((await store.read(NAMESPACE)).keys.fields["ep"]).toMatch(/:attached$/);
  await detach(replica);
  await untilInfo(master, { connected_slaves: "0" });
  await expect(lease()).rejects.toMatchObject({
    code: "manual_recovery_required",
    message: expect.stringContaining("an uncounted replica was attached"),
  });
});

test("a store without a server fails to open at once, with the address", async () => {
  await expect(storeAt("redis://127.0.0.1:1")).rejects.toMatchObject(
    unavailableBecause(/127\.0\.0\.1:1.*ECONNREFUSED/),
  );
});

test("a store without the right password fails to open, and the error does not show the password", async () => {
  const config = { requirepass: "right" };
  const { port } = await startRedisServer({ config, openBecause: "it asks for the default user's password" });
  await expect(storeAt(`redis://127.0.0.1:${port}`)).rejects.toMatchObject(unavailableBecause("password"));
  const wrong = await storeAt(`redis://:geheim@127.0.0.1:${port}`).catch((error: Error) => error);
  expect(wrong).toMatchObject(unavailableBecause("rejects user or password"));
  expect(String(wrong)).not.toContain("geheim");
  const right = await storeAt(`redis://:right@127.0.0.1:${port}`);
  expect(await right.listNamespaces()).toEqual([]);
});

test("a store fails to open when the server refuses the database, and a reconnect never leases from another one", async () => {
  const { url, port } = await startRedisServer({ openBecause: "the shipped users may not choose a database" });
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

test("a store separates databases and prefixes", async () => {
  const { url } = await startRedisServer({ openBecause: "the shipped users have one database and one prefix" });
  const stores = await Promise.all([`${url}/0`, `${url}/3`, `${url}/0?prefix=other:`].map((at) => storeAt(at)));
  for (const store of stores) {
    expect(await store.listNamespaces()).toEqual([]);
    const { lease } = await withNamespace(store);
    expect((await lease()).firstRun).toBe(1);
  }
});

test("a step counts the nodes that acknowledged it, and waits for them no longer than its timeout", async () => {
  const { master, replicas } = await startReplicatedRedis({ nodeCount: 2 });
  const [replica] = replicas as [RedisServer];
  const store = await storeAt(master.url);
  const commands = commandsFor(storeIdFrom(1));
  await stepOn(store, NAMESPACE, commands.init({ nodeCount: 2 }));
  const lease = () => stepOn(store, NAMESPACE, commands.lease());
  expect((await lease()).acknowledgedCount).toBe(1);
  await replica.kill("SIGSTOP");
  try {
    expect(await lease()).toMatchObject({ acknowledgedCount: 0, after: { highWaterMark: 2 } });
  } finally {
    await replica.kill("SIGCONT");
  }
  await until(async () => (await lease()).acknowledgedCount === 1);
});

async function untilMarkIs({ read }: StoreInHand, mark: number): Promise<void> {
  await until(async () => (await read()).highWaterMark >= mark);
}
