/**
 * A store on a Cluster: each namespace at the node that serves its slot, found again by itself after whatever moves it.
 * Guarantees: G3 (docs/guarantees.md).
 */
import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { beforeEach, expect, test } from "vitest";
import { anyCharacter } from "../../../test/any-character.js";
import { type ClusterRedis, startClusterRedis } from "../../../test/redis/cluster-redis.js";
import { command, info, until } from "../../../test/redis/redis-command.js";
import { clusterStoreUrlAt, TESTER_LOGIN } from "../../../test/redis/shipped-users.js";
import { ownServerUnavailable, type RedisServer, startRedisServer } from "../../../test/redis/test-redis.js";
import { findLease } from "../src/ledger/read-ledger.js";
import { slotOf } from "../src/stores/redis/discovery.js";
import { expectNoRunTwice, RATE, startCrowd } from "./leasing-crowd.js";
import { redisCoordinatorAt, redisStoreAt } from "./redis-coordinator.js";

/** A master and its replica: a step counts when both have it. */
const INIT = { nodeCount: 2, rate: RATE };
/** Of ten names each of three masters has some. */
const NAMES = Array.from({ length: 10 }, (_, index) => `list-${index}`);

beforeEach((context) => {
  const reason = ownServerUnavailable();
  context.skip(reason !== undefined, reason);
});

/** One node of six: the others are learnt. */
function urlOf({ nodes }: ClusterRedis, index = 0): string {
  const { host, port } = nodes[index] as RedisServer;
  return clusterStoreUrlAt(`${host}:${port}`);
}

async function leasingOn(cluster: ClusterRedis, url = urlOf(cluster)) {
  const parts = await redisCoordinatorAt(url);
  for (const name of NAMES) await parts.coordinator.initNamespace(name, INIT);
  const crowd = startCrowd([parts.coordinator], NAMES);
  await crowd.untilLeased();
  return { ...parts, crowd };
}

/** The namespaces of each master, and one of the first master's. */
async function namesOf(cluster: ClusterRedis, master: RedisServer): Promise<[string, ...string[]]> {
  const owners = await Promise.all(NAMES.map((name) => cluster.masterOf(`{${name}}`)));
  const names = NAMES.filter((_, index) => owners[index] === master);
  expect(names.length).toBeGreaterThan(0);
  return names as [string, ...string[]];
}

test("computes the slot of a key as the server does", async () => {
  const cluster = await startClusterRedis();
  const key = fc.oneof(
    fc.string({ unit: anyCharacter, minLength: 1, maxLength: 20 }),
    fc.string({ unit: fc.constantFrom("{", "}", "a", "b"), minLength: 1, maxLength: 12 }),
  );
  await fc.assert(
    fc.asyncProperty(key, async (text) => {
      expect(slotOf(text)).toBe(await command(cluster.nodes[0] as RedisServer, "CLUSTER", "KEYSLOT", text));
    }),
    { numRuns: 300 },
  );
});

test("keeps the namespaces of one store on all masters, and lists them all", async () => {
  const cluster = await startClusterRedis();
  const store = await redisStoreAt(urlOf(cluster));
  const { crowd } = await leasingOn(cluster);
  await crowd.stop();
  const owners = new Set(await Promise.all(NAMES.map((name) => cluster.masterOf(`{${name}}`))));
  expect(owners.size).toBe(3);
  expect(await store.listNamespaces()).toEqual([...NAMES].sort());
  const lease = crowd.leases[0];
  expect(await findLease(store, lease?.namespace ?? "", lease?.firstRun ?? 0)).toMatchObject({
    runCount: lease?.runCount,
  });
});

test.each(["FORCE", "TAKEOVER", undefined] as const)(
  "goes on at the replica that was made master (%s), and leases no run twice",
  async (force) => {
    const cluster = await startClusterRedis();
    const { crowd, jumpsOf } = await leasingOn(cluster);
    const master = cluster.nodes[0] as RedisServer;
    const names = await namesOf(cluster, master);
    const [replica] = (await cluster.replicasOf(master)) as [RedisServer];
    await cluster.failover(replica, force);
    await cluster.untilAgreed();
    await crowd.untilLeased();
    await crowd.stop();
    expectNoRunTwice(crowd.leases);
    for (const name of names) expect(jumpsOf(name)).toContain("epoch_changed");
    for (const name of NAMES) if (!names.includes(name)) expect(jumpsOf(name)).toEqual([]);
  },
);

test("goes on when a master is killed, the one node of its URL, and its replica has taken over and is followed again", async () => {
  const cluster = await startClusterRedis();
  const { crowd, jumpsOf } = await leasingOn(cluster);
  const master = cluster.nodes[0] as RedisServer;
  const [replica] = (await cluster.replicasOf(master)) as [RedisServer];
  const [name] = await namesOf(cluster, master);
  await master.kill("SIGKILL");
  await until(
    "the replica is a master",
    () => info(replica),
    ({ role }) => role === "master",
  );
  // Alone it has no quorum, and says so.
  await crowd.untilRefused(name, "quorum_missing");
  await master.start();
  await crowd.untilLeased();
  await crowd.stop();
  expectNoRunTwice(crowd.leases);
  expect(jumpsOf(name)).toContain("epoch_changed");
});

test("refuses and discards while the replica of a master is frozen, goes on when it thaws; the other masters' namespaces never notice", async () => {
  const cluster = await startClusterRedis({ nodeTimeoutMs: 60_000 });
  const { crowd } = await leasingOn(cluster);
  const master = cluster.nodes[0] as RedisServer;
  const [name, ...neighbors] = await namesOf(cluster, master);
  const [replica] = (await cluster.replicasOf(master)) as [RedisServer];
  const others = NAMES.filter((one) => one !== name && !neighbors.includes(one));
  await replica.kill("SIGSTOP");
  await crowd.untilRefused(name, "quorum_missing");
  const leasedAlone = crowd.leases.length;
  await crowd.untilRefused(name, "quorum_missing");
  expect(crowd.leases.slice(leasedAlone).filter(({ namespace }) => namespace === name)).toEqual([]);
  await crowd.untilLeased(others);
  await replica.kill("SIGCONT");
  await crowd.untilLeased();
  await crowd.stop();
  expectNoRunTwice(crowd.leases);
  for (const other of others) expect(crowd.refusalsOf(other)["quorum_missing"]).toBeUndefined();
});

test("goes on at the node that a slot was moved to; meanwhile the namespaces beside it lease undisturbed", async () => {
  const cluster = await startClusterRedis();
  const { crowd, jumpsOf } = await leasingOn(cluster);
  const [from, to] = cluster.nodes as [RedisServer, RedisServer];
  const [name, ...neighbors] = await namesOf(cluster, from);
  expect(neighbors.length).toBeGreaterThan(0);
  await moveSlot(`{${name}}`, from, to, async () => {
    await crowd.untilRefused(name, "store_unavailable");
    await crowd.untilLeased(neighbors);
  });
  await crowd.untilLeased();
  await crowd.stop();
  expectNoRunTwice(crowd.leases);
  expect(jumpsOf(name)).toContain("epoch_changed");
  for (const other of neighbors) expect(crowd.refusalsOf(other)["store_unavailable"]).toBeUndefined();
});

test("does not send a step after the slot that has moved: it is refused, and nothing was leased anywhere", async () => {
  const cluster = await startClusterRedis();
  const { store, coordinator } = await redisCoordinatorAt(urlOf(cluster));
  const [name] = NAMES as [string];
  await coordinator.initNamespace(name, INIT);
  await coordinator.stopHeartbeat();
  const from = await cluster.masterOf(`{${name}}`);
  const to = cluster.nodes.slice(0, 3).find((node) => node !== from) as RedisServer;
  const { storeId, generation } = await store.readNamespace(name);
  await moveSlot(`{${name}}`, from, to, async () => {});
  const marks = () => command(to, "HMGET", `callnumber:{${name}}:record`, "c", "g");
  const before = await marks();
  const step = {
    step: "claim",
    storeId,
    nonce: randomBytes(12).toString("base64url"),
    isSilenceAccepted: false,
    generation,
    generationMin: generation,
  } as const;
  // Never "namespace_moved": that is what an operator does to a whole store, and it fences.
  await expect(store.step(name, step)).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining("another node of the Cluster"),
  });
  expect(await marks()).toEqual(before);
  const again = () => store.step(name, { ...step, nonce: randomBytes(12).toString("base64url") });
  const { after } = await until("the store finds the new node", again, () => true);
  expect(after.generation).toBe(generation + 1);
});

test.each([
  ["whole, and has seen fewer fail-overs", [0, 16_383], 1],
  ["not whole, whatever it has seen", [0, 100], 99],
] as const)("does not believe a node whose Cluster is %s", async (_, [firstSlot, lastSlot], epoch) => {
  const cluster = await startClusterRedis();
  const stranger = await startRedisServer({
    config: { "cluster-enabled": "yes" },
    morePorts: ["cluster-port"],
  });
  await command(stranger, "CLUSTER", "SET-CONFIG-EPOCH", epoch);
  await command(stranger, "CLUSTER", "ADDSLOTSRANGE", firstSlot, lastSlot);
  const isWhole = lastSlot === 16_383;
  const state = async () => String(await command(stranger, "CLUSTER", "INFO"));
  await until("the stranger has made up its mind", state, (text) => text.includes("cluster_state:ok") === isWhole);
  const own = cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(",");
  const other = `${stranger.host}:${stranger.port}`;
  for (const hosts of [`${other},${own}`, `${own},${other}`]) {
    const { coordinator } = await redisCoordinatorAt(
      `${clusterStoreUrlAt(hosts)}?prefix=callnumber:${randomBytes(4).toString("hex")}:`,
    );
    for (const name of NAMES.slice(0, 3)) await coordinator.initNamespace(name, INIT);
  }
  expect(await command(stranger, "DBSIZE")).toBe(0);
});

test("says so when a URL names a Cluster and finds a single server, or the other way round", async () => {
  const { nodes } = await startClusterRedis();
  const misled = await redisStoreAt((nodes[0] as RedisServer).url);
  const readings = await Promise.all(NAMES.map((name) => misled.readNamespace(name).catch((error: Error) => error)));
  expect(readings).toContainEqual(
    expect.objectContaining({ code: "store_unavailable", message: expect.stringContaining("redis-cluster://") }),
  );
  const single = await startRedisServer();
  await expect(redisStoreAt(clusterStoreUrlAt(`${single.host}:${single.port}`))).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining("cluster support disabled"),
  });
});

/** As redis-cli does it, key by key; `meanwhile` is done when the first key has gone and the others have not. */
async function moveSlot(
  key: string,
  from: RedisServer,
  to: RedisServer,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const slot = slotOf(key);
  const { username, password } = TESTER_LOGIN;
  const [fromId, toId] = (await Promise.all([from, to].map((node) => command(node, "CLUSTER", "MYID")))) as [
    string,
    string,
  ];
  await command(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromId);
  await command(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", toId);
  const keys = (await command(from, "CLUSTER", "GETKEYSINSLOT", slot, 100)) as string[];
  expect(keys.length).toBeGreaterThan(0);
  for (const [index, name] of keys.entries()) {
    await command(from, "MIGRATE", to.host, to.port, name, 0, 5_000, "AUTH2", username, password);
    if (index === 0) await meanwhile();
  }
  // The new owner first: until the old one hears of it, it sends whoever asks there.
  for (const node of [to, from]) await command(node, "CLUSTER", "SETSLOT", slot, "NODE", toId);
}
