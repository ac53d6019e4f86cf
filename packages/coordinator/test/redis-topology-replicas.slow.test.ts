/**
 * A store on one server with replicas: what counts is what enough nodes have, and only a master leases.
 * Guarantees: G4 (docs/guarantees.md).
 */
import type { Lease } from "@callnumber/protocol/api";
import { beforeEach, expect, test, vi } from "vitest";
import { command, hashAt, info } from "../../../test/redis/redis-command.js";
import {
  detach,
  follow,
  promote,
  startReplicatedRedis,
  untilCaughtUp,
  untilLinked,
} from "../../../test/redis/replicated-redis.js";
import { type RedisServer, startRedisServer } from "../../../test/redis/test-redis.js";
import type { Coordinator } from "../src/coordinator.js";
import { commandsFor } from "./commands-for-test.js";
import { expectNoRunTwice, RATE, requestAfter, startCrowd } from "./leasing-crowd.js";
import { needsOwnServer, redisCoordinatorAt, storeAt, until } from "./redis-for-test.js";
import { stepOn } from "./steps-for-test.js";

beforeEach(needsOwnServer);

/** Leases once. */
function leaseAt(coordinator: Coordinator): Promise<Lease> {
  const holder = { name: "importer", host: "mail-1", pid: 4711, labels: {} };
  return coordinator.lease("main", { ...requestAfter(undefined), holder });
}

/** Leases as soon as a lease succeeds. */
function leased(coordinator: Coordinator): Promise<Lease> {
  return vi.waitFor(() => leaseAt(coordinator), { timeout: 300_000 });
}

test("runs are discarded while too few replicas acknowledge, and leasing continues above them when enough do", async () => {
  const { master, replicas } = await startReplicatedRedis({ nodeCount: 3 });
  const { store, coordinator } = await redisCoordinatorAt(master.url);
  await coordinator.initNamespace("main", { nodeCount: 3, rate: RATE });
  const crowd = startCrowd([coordinator], ["main"]);
  await crowd.untilLeased();
  const [one, other] = replicas as [RedisServer, RedisServer];
  await one.kill("SIGSTOP");
  await crowd.untilLeased();
  await other.kill("SIGSTOP");
  await crowd.untilRefused("main", "quorum_missing");
  const leasedBefore = crowd.leases.length;
  await crowd.untilRefused("main", "quorum_missing");
  expect(crowd.leases.slice(leasedBefore)).toEqual([]);
  expect((await coordinator.status("main")).guard).toMatchObject({ state: "recovering", code: "quorum_missing" });
  await other.kill("SIGCONT");
  await crowd.untilLeased();
  await crowd.stop();
  expectNoRunTwice(crowd.leases);

  await other.kill("SIGSTOP");
  const before = (await store.readNamespace("main")).highWaterMark;
  await expect(leaseAt(coordinator)).rejects.toMatchObject({ code: "quorum_missing" });
  const discardedUpTo = (await store.readNamespace("main")).highWaterMark;
  expect(discardedUpTo).toBeGreaterThan(before);
  await other.kill("SIGCONT");
  expect((await leased(coordinator)).firstRun).toBeGreaterThan(discardedUpTo);
  await one.kill("SIGCONT");
});

test("a replica leases nothing, although it can be written to", async () => {
  const { master, replicas } = await startReplicatedRedis({ nodeCount: 2, config: { "replica-read-only": "no" } });
  const [replica] = replicas as [RedisServer];
  const { coordinator } = await redisCoordinatorAt(master.url);
  await coordinator.initNamespace("main", { nodeCount: 2 });
  await coordinator.stopHeartbeat();
  await untilCaughtUp(replica, master);
  const store = await storeAt(replica.url);
  const { storeId } = await store.readNamespace("main");
  const before = await hashAt(replica, "callnumber:{main}:record");
  const lease = stepOn(store, "main", commandsFor(storeId).lease(), { now: Date.now });
  await expect(lease).rejects.toMatchObject({ code: "store_is_replica" });
  expect(await hashAt(replica, "callnumber:{main}:record")).toEqual(before);
  // It connects again, as the master may be there by now.
  const finding = { code: "store_is_replica", remedy: expect.stringContaining("redis-sentinel://") };
  await vi.waitFor(async () => expect(await store.preflight()).toContainEqual(expect.objectContaining(finding)));
});

test("a master leases nothing while an uncounted replica follows it, and the finding names the command", async () => {
  const master = await startRedisServer();
  const { coordinator, store } = await redisCoordinatorAt(master.url);
  await coordinator.initNamespace("main", { rate: RATE });
  await leaseAt(coordinator);
  const finding = expect.objectContaining({
    code: "unexpected_replicas",
    remedy: expect.stringContaining("--nodes 2"),
    namespaces: ["main"],
  });
  expect(await store.preflight()).not.toContainEqual(finding);
  await follow(await startRedisServer(), master);
  await expect(leaseAt(coordinator)).rejects.toMatchObject({ code: "unexpected_replicas" });
  expect(await store.preflight()).toContainEqual(finding);
});

/**
 * From its RDB the replica continues where it was, so Redis counts neither a new start of the master nor a full resynchronization.
 */
test("no run is leased twice when a replica forgets another master's claim and comes back in part", async () => {
  const { master, replicas } = await startReplicatedRedis({ nodeCount: 3 });
  const [rival, forgetful] = replicas as [RedisServer, RedisServer];
  const before = await redisCoordinatorAt(master.url);
  await before.coordinator.initNamespace("main", { nodeCount: 3, rate: RATE });
  // A full resynchronization causes a recovery: from now on the mark is at the ceiling, where every later recovery sets it, too.
  await promote(forgetful);
  await follow(forgetful, master);
  await until(async () => (await before.store.readNamespace("main")).highWaterMark > 0);
  // One of them is enough for the quorum: the other one may still have nothing.
  for (const replica of replicas) await untilCaughtUp(replica, master);
  await command(forgetful, "SAVE");
  // A rival that had less than it, by a ping only, would send it everything, and that would stand in place of what was saved.
  await detach(forgetful);
  await untilCaughtUp(rival, master);

  // A failover of which the old master gets no notice, and that no redis.conf has.
  await command(rival, "REPLICAOF", "NO", "ONE");
  await command(forgetful, "REPLICAOF", rival.host, rival.port);
  await untilLinked(forgetful, rival);
  const { coordinator: there } = await redisCoordinatorAt(rival.url);
  const leases = [await leased(there), await leased(there), await leased(there)];

  await forgetful.kill("SIGKILL");
  await forgetful.start();
  await untilLinked(forgetful, master);
  expect(Number((await info(master)).sync_partial_ok)).toBeGreaterThan(0);
  const last = Math.max(...leases.map(({ firstRun }) => firstRun));
  for (let lease = await leased(before.coordinator); ; lease = await leased(before.coordinator)) {
    leases.push(lease);
    if (lease.firstRun > last) break;
  }
  expectNoRunTwice(leases);
});
