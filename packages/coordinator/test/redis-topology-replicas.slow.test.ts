/**
 * A store on one server with replicas: what counts is what enough nodes have, and only a master leases.
 * Guarantees: G4 (docs/guarantees.md).
 */
import type { Lease } from "@callnumber/protocol/api";
import { beforeEach, expect, test, vi } from "vitest";
import { command, info } from "../../../test/redis/redis-command.js";
import {
  detach,
  follow,
  promote,
  startReplicatedRedis,
  untilCaughtUp,
  untilLinked,
} from "../../../test/redis/replicated-redis.js";
import { type RedisServer } from "../../../test/redis/test-redis.js";
import type { Coordinator } from "../src/coordinator.js";
import { expectNoRunTwice, RATE, requestAfter } from "./leasing-crowd.js";
import { needsOwnServer, redisCoordinatorAt, until } from "./redis-for-test.js";

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
