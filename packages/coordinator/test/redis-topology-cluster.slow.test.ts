/**
 * A store on a Cluster: each namespace at the node that serves its slot, found again automatically after whatever moves it.
 * Guarantees: G3 (docs/guarantees.md).
 */
import { randomBytes } from "node:crypto";
import type { Lease } from "@callnumber/protocol/api";
import fc from "fast-check";
import { beforeEach, expect, test } from "vitest";
import { anyCharacter } from "../../../test/any-character.js";
import { type ClusterRedis, type ClusterRedisOptions, startClusterRedis } from "../../../test/redis/cluster-redis.js";
import { command, until, untilInfo } from "../../../test/redis/redis-command.js";
import { clusterStoreUrlAt, TESTER_LOGIN } from "../../../test/redis/shipped-users.js";
import { type RedisServer, startRedisServer } from "../../../test/redis/test-redis.js";
import { findLease } from "../src/ledger/read-ledger.js";
import { slotOf } from "../src/stores/redis/discovery.js";
import { commandsFor } from "./commands-for-test.js";
import { expectNoRunTwice, RATE, startCrowd } from "./leasing-crowd.js";
import { expectUsers, needsOwnServer, redisCoordinatorAt, storeAt, untilDone } from "./redis-for-test.js";
import { stepOn } from "./steps-for-test.js";

/** A master and its replica: a step counts when both have it. */
const INIT = { nodeCount: 2, rate: RATE };
/** Of ten names each of three masters has some. */
const NAMES = Array.from({ length: 10 }, (_, index) => `list-${index}`);

beforeEach(needsOwnServer);

/** One node of six names the others. */
function urlOf({ nodes: [first] }: ClusterRedis): string {
  const { host, port } = first as RedisServer;
  return clusterStoreUrlAt(`${host}:${port}`);
}

/** A coordinator and clients that lease all namespaces; `names` are those of the first master, which has one replica. */
async function leasingOn(options?: ClusterRedisOptions) {
  const cluster = await startClusterRedis(options);
  const parts = await redisCoordinatorAt(urlOf(cluster));
  for (const name of NAMES) await parts.coordinator.initNamespace(name, INIT);
  const crowd = startCrowd([parts.coordinator], NAMES);
  await crowd.untilLeased();
  const [master] = cluster.nodes as [RedisServer];
  const [replica] = (await cluster.replicasOf(master)) as [RedisServer];
  const owners = await Promise.all(NAMES.map((name) => cluster.masterOf(`{${name}}`)));
  expect(new Set(owners).size).toBe(3);
  const names = NAMES.filter((_, index) => owners[index] === master) as [string, ...string[]];
  /** Ends the test: no run was leased twice. */
  const endLeasing = async () => {
    await crowd.untilLeased();
    await crowd.stop();
    expectNoRunTwice(crowd.leases);
  };
  const others = NAMES.filter((name) => !names.includes(name));
  return { ...parts, cluster, crowd, endLeasing, master, replica, names, others };
}

test("the slot of a key is that of the server", async () => {
  const node = await startRedisServer({ config: { "cluster-enabled": "yes" }, morePorts: ["cluster-port"] });
  const key = fc.oneof(
    fc.string({ unit: anyCharacter, minLength: 1, maxLength: 20 }),
    fc.string({ unit: fc.constantFrom("{", "}", "a", "b"), minLength: 1, maxLength: 12 }),
  );
  await fc.assert(
    fc.asyncProperty(key, async (text) => {
      expect(slotOf(text)).toBe(await command(node, "CLUSTER", "KEYSLOT", text));
    }),
    { numRuns: 300 },
  );
});

test("a store keeps its namespaces on all masters, and lists them all", async () => {
  const { cluster, crowd, endLeasing } = await leasingOn();
  await endLeasing();
  const store = await storeAt(urlOf(cluster));
  expect(await store.listNamespaces()).toEqual([...NAMES].sort());
  const [{ namespace, firstRun, runCount }] = crowd.leases as [Lease];
  expect(await findLease(store, namespace, firstRun)).toMatchObject({ runCount });
});

test("leasing continues after the URL's one node, a master, is killed, once its replica has taken over", async () => {
  const { cluster, crowd, master, replica, endLeasing, names, recoveriesOf } = await leasingOn();
  await master.kill("SIGKILL");
  await untilInfo(replica, { role: "master" });
  // Alone it has no quorum.
  await crowd.untilRefused(names[0], "quorum_missing");
  await master.start();
  await untilInfo(master, { role: "slave", master_link_status: "up" });
  await endLeasing();
  await expectUsers(cluster.nodes, ["callnumber", "replica"]);
  expect(recoveriesOf(names[0])).toContain("epoch_changed");
});

test("runs are discarded while a master's replica is frozen, and other masters' namespaces lease undisturbed", async () => {
  const { crowd, replica, endLeasing, names, others } = await leasingOn({ nodeTimeoutMs: 60_000 });
  await replica.kill("SIGSTOP");
  await crowd.untilRefused(names[0], "quorum_missing");
  const leasedAlone = crowd.leases.length;
  await crowd.untilRefused(names[0], "quorum_missing");
  expect(crowd.leases.slice(leasedAlone).filter(({ namespace }) => namespace === names[0])).toEqual([]);
  await crowd.untilLeased(others);
  await replica.kill("SIGCONT");
  await endLeasing();
  for (const other of others) expect(crowd.refusalsOf(other)["quorum_missing"]).toBeUndefined();
});

test("leasing continues at the node that a slot was moved to, and in its other namespaces without disturbance", async () => {
  const { cluster, crowd, master, endLeasing, names, recoveriesOf } = await leasingOn();
  const [name, ...neighbors] = names;
  expect(neighbors.length).toBeGreaterThan(0);
  await moveSlot(`{${name}}`, master, cluster.nodes[1] as RedisServer, async () => {
    await crowd.untilRefused(name, "store_unavailable");
    await crowd.untilLeased(neighbors);
  });
  await endLeasing();
  expect(recoveriesOf(name)).toContain("epoch_changed");
  for (const other of neighbors) expect(crowd.refusalsOf(other)["store_unavailable"]).toBeUndefined();
});

test("a step is not sent to the node that its slot has moved to: it fails, and no node has done it", async () => {
  const cluster = await startClusterRedis();
  const { store, coordinator } = await redisCoordinatorAt(urlOf(cluster));
  const [name] = NAMES as [string];
  await coordinator.initNamespace(name, INIT);
  await coordinator.stopHeartbeat();
  const from = await cluster.masterOf(`{${name}}`);
  const to = cluster.nodes.slice(0, 3).find((node) => node !== from) as RedisServer;
  const { storeId, generation } = await store.readNamespace(name);
  const claim = () => stepOn(store, name, commandsFor(storeId).claim(generation, { generationMin: generation }));
  await moveSlot(`{${name}}`, from, to, async () => {});
  const marks = () => command(to, "HMGET", `callnumber:{${name}}:record`, "c", "g");
  const before = await marks();
  // Never "namespace_moved": that is what an operator does to a whole store, and it ends leasing.
  await expect(claim()).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringContaining("another node of the Cluster"),
  });
  expect(await marks()).toEqual(before);
  expect((await untilDone(claim)).after.generation).toBe(generation + 1);
});

test.each([
  ["whole, and has seen fewer failovers", [0, 16_383], 1],
  ["not whole, whatever it has seen", [0, 100], 99],
] as const)("a node is not believed whose Cluster is %s", async (_, [firstSlot, lastSlot], epoch) => {
  const cluster = await startClusterRedis();
  const foreign = await startRedisServer({ config: { "cluster-enabled": "yes" }, morePorts: ["cluster-port"] });
  await command(foreign, "CLUSTER", "SET-CONFIG-EPOCH", epoch);
  await command(foreign, "CLUSTER", "ADDSLOTSRANGE", firstSlot, lastSlot);
  const isWhole = lastSlot === 16_383;
  const state = async () => String(await command(foreign, "CLUSTER", "INFO"));
  await until("the foreign node knows its state", state, (text) => text.includes("cluster_state:ok") === isWhole);
  const own = cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(",");
  const other = `${foreign.host}:${foreign.port}`;
  for (const hosts of [`${other},${own}`, `${own},${other}`]) {
    const prefix = `callnumber:${randomBytes(4).toString("hex")}:`;
    const { coordinator } = await redisCoordinatorAt(`${clusterStoreUrlAt(hosts)}?prefix=${prefix}`);
    for (const name of NAMES.slice(0, 3)) await coordinator.initNamespace(name, INIT);
  }
  expect(await command(foreign, "DBSIZE")).toBe(0);
});

test("the error names the right kind of URL when a URL mistakes a Cluster for a single server, or vice versa", async () => {
  const { nodes } = await startClusterRedis();
  const misled = await storeAt((nodes[0] as RedisServer).url);
  const readings = await Promise.all(NAMES.map((name) => misled.readNamespace(name).catch((error: Error) => error)));
  expect(readings).toContainEqual(
    expect.objectContaining({ code: "store_unavailable", message: expect.stringContaining("redis-cluster://") }),
  );
  const single = await startRedisServer();
  await expect(storeAt(clusterStoreUrlAt(`${single.host}:${single.port}`))).rejects.toMatchObject({
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
  const idOf = async (node: RedisServer) => String(await command(node, "CLUSTER", "MYID"));
  const toId = await idOf(to);
  await command(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", await idOf(from));
  await command(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", toId);
  const keys = (await command(from, "CLUSTER", "GETKEYSINSLOT", slot, 100)) as string[];
  expect(keys.length).toBeGreaterThan(0);
  for (const [index, name] of keys.entries()) {
    await command(from, "MIGRATE", to.host, to.port, name, 0, 5_000, "AUTH2", username, password);
    if (index === 0) await meanwhile();
  }
  // The new owner first: until the old one hears of it, it sends clients there.
  for (const node of [to, from]) await command(node, "CLUSTER", "SETSLOT", slot, "NODE", toId);
}
