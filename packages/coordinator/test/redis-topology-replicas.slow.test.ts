/**
 * A store on one server with replicas: what counts is what enough nodes have, and only a master leases.
 * Guarantees: G4 (docs/guarantees.md).
 */
import type { Lease } from "@callnumber/protocol/wire";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { command, info, until } from "../../../test/redis/redis-command.js";
import {
  detach,
  follow,
  promote,
  startReplicatedRedis,
  untilCaughtUp,
  untilLinked,
} from "../../../test/redis/replicated-redis.js";
import { ownServerUnavailable, type RedisServer, startRedisServer } from "../../../test/redis/test-redis.js";
import { Coordinator } from "../src/coordinator.js";
import { expectNoRunTwice, RATE, requestAfter, SHORT_BOUNDS, startCrowd } from "./leasing-crowd.js";
import { redisCoordinatorAt, redisStoreAt } from "./redis-coordinator.js";

beforeEach((context) => {
  const reason = ownServerUnavailable();
  context.skip(reason !== undefined, reason);
});

test("refuses and discards while too few replicas answer, and goes on above what was discarded when they do again", async () => {
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
  await expect(coordinator.lease("main", request())).rejects.toMatchObject({ code: "quorum_missing" });
  const discardedUpTo = (await store.readNamespace("main")).highWaterMark;
  expect(discardedUpTo).toBeGreaterThan(before);
  await other.kill("SIGCONT");
  const leased = await until(
    "it leases again",
    () => coordinator.lease("main", request()),
    () => true,
  );
  expect(leased.firstRun).toBeGreaterThan(discardedUpTo);
  await one.kill("SIGCONT");
});

test("leases nothing at a replica, though it can be written to", async () => {
  const { master, replicas } = await startReplicatedRedis({ nodeCount: 2, config: { "replica-read-only": "no" } });
  const [replica] = replicas as [RedisServer];
  const { coordinator } = await redisCoordinatorAt(master.url);
  await coordinator.initNamespace("main", { nodeCount: 2 });
  await coordinator.stopHeartbeat();
  await until(
    "the replica has the record",
    () => command(replica, "EXISTS", "callnumber:{main}:record"),
    (n) => n === 1,
  );
  const store = await redisStoreAt(replica.url);
  const misled = new Coordinator({ store, name: "misled", bounds: SHORT_BOUNDS });
  onTestFinished(() => misled.stopHeartbeat());
  const before = await command(replica, "HGETALL", "callnumber:{main}:record");
  await expect(misled.lease("main", request())).rejects.toMatchObject({
    code: "store_is_replica",
  });
  expect(await command(replica, "HGETALL", "callnumber:{main}:record")).toEqual(before);
  expect(await store.preflight()).toContainEqual(
    expect.objectContaining({ code: "store_is_replica", remedy: expect.stringContaining("redis-sentinel://") }),
  );
});

test("leases nothing as soon as a replica follows that nobody has counted, and says how it is counted", async () => {
  const { coordinator, store, master } = await aloneAtFirst();
  const uncounted = await startRedisServer();
  await follow(uncounted, master);
  await expect(coordinator.lease("main", request())).rejects.toMatchObject({
    code: "unexpected_replicas",
  });
  expect(await store.preflight()).toContainEqual(
    expect.objectContaining({
      code: "unexpected_replicas",
      remedy: expect.stringContaining("--nodes 2"),
      namespaces: ["main"],
    }),
  );
  expect((await info(master)).connected_slaves).toBe("1");
});

async function aloneAtFirst() {
  const master = await startRedisServer();
  const parts = await redisCoordinatorAt(master.url);
  await parts.coordinator.initNamespace("main", { rate: RATE });
  await parts.coordinator.lease("main", request());
  expect(await parts.store.preflight()).not.toContainEqual(expect.objectContaining({ code: "unexpected_replicas" }));
  return { ...parts, master };
}

function request() {
  return { ...requestAfter(undefined), holder: { name: "importer", host: "mail-1", pid: 4711, labels: {} } };
}

/**
 * From its RDB the replica continues where it was, so Redis counts neither a new start of the master nor a full resynchronization.
 */
test("leases no run twice when a replica forgets another master's claim and comes back in part", async () => {
  const { master, replicas } = await startReplicatedRedis({ nodeCount: 3 });
  const [rival, forgetful] = replicas as [RedisServer, RedisServer];
  const before = await redisCoordinatorAt(master.url);
  await before.coordinator.initNamespace("main", { nodeCount: 3, rate: RATE });
  // A full resynchronisation is a doubt: from now on the mark lies on the line, where every later jump lands, too.
  await promote(forgetful);
  await follow(forgetful, master);
  await until(
    "the mark is on the line",
    () => before.store.readNamespace("main"),
    ({ highWaterMark }) => highWaterMark > 0,
  );
  // One of them is enough for the quorum: the other one may still have nothing.
  for (const replica of replicas) await untilCaughtUp(replica, master);
  await command(forgetful, "SAVE");
  // A rival that had less than it, by a ping only, would send it everything, and that would stand in place of what was saved.
  await detach(forgetful);
  await untilCaughtUp(rival, master);

  // A fail-over that the old master is not told of, and that no redis.conf remembers.
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

/** A run, as soon as there is one. */
function leased(coordinator: Coordinator): Promise<Lease> {
  return until(
    "a run is leased",
    () => coordinator.lease("main", request()),
    () => true,
  );
}
