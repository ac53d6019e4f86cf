/**
 * A replica that forgets what it had acknowledged elsewhere, and comes back to a master that was never in doubt: from its RDB it goes on
 * where it stood, so Redis counts neither a new start of the master nor a full resynchronisation.
 */
import type { Lease } from "@callnumber/protocol/wire";
import { beforeEach, expect, test } from "vitest";
import { command, info, until } from "../../../test/redis/redis-command.js";
import {
  detach,
  follow,
  promote,
  startReplicatedRedis,
  untilCaughtUp,
  untilLinked,
} from "../../../test/redis/replicated-redis.js";
import { ownServerUnavailable, type RedisServer } from "../../../test/redis/test-redis.js";
import type { Coordinator } from "../src/coordinator.js";
import { expectNoRunTwice, RATE, requestAfter } from "./leasing-crowd.js";
import { redisCoordinatorAt } from "./redis-coordinator.js";

beforeEach((context) => {
  const reason = ownServerUnavailable();
  context.skip(reason !== undefined, reason);
});

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
  const holder = { name: "importer", host: "mail-1", pid: 4711, labels: {} };
  return until(
    "a run is leased",
    () => coordinator.lease("main", { ...requestAfter(undefined), holder }),
    () => true,
  );
}
