/**
 * A store on a Sentinel group: the way to the master is found again by itself, and no fail-over leases a run twice.
 * Guarantees: G3 (docs/guarantees.md).
 */
import { beforeEach, expect, test } from "vitest";
import { command, info, until } from "../../../test/redis/redis-command.js";
import { untilCaughtUp } from "../../../test/redis/replicated-redis.js";
import { type SentinelRedis, startSentinelRedis } from "../../../test/redis/sentinel-redis.js";
import { REPLICA, SENTINEL, sentinelStoreUrlAt, watching } from "../../../test/redis/shipped-users.js";
import { ownServerUnavailable, type RedisServer, startRedisServer } from "../../../test/redis/test-redis.js";
import { expectNoRunTwice, greatestRun, RATE, startCrowd } from "./leasing-crowd.js";
import { redisCoordinatorAt, redisStoreAt } from "./redis-coordinator.js";

/** Three data nodes: a step counts when one other node has it. */
const INIT = { nodeCount: 3, rate: RATE };

beforeEach((context) => {
  const reason = ownServerUnavailable();
  context.skip(reason !== undefined, reason);
});

function urlOf({ sentinelHosts, masterName }: SentinelRedis): string {
  return sentinelStoreUrlAt(sentinelHosts, masterName);
}

test("goes on by itself at the new master when the old one is killed, again and again, and leases no run twice", async () => {
  const group = await startSentinelRedis();
  const [one, other] = [await redisCoordinatorAt(urlOf(group)), await redisCoordinatorAt(urlOf(group))];
  await one.coordinator.initNamespace("main", INIT);
  const crowd = startCrowd([one.coordinator, other.coordinator], ["main"]);
  await crowd.untilLeased();
  let master = group.master;
  for (let failover = 1; failover <= 2; failover++) {
    await master.kill("SIGKILL");
    const next = await group.waitForMaster(master);
    await crowd.untilLeased();
    // It comes back as a master that nobody has told yet, and is made a replica.
    await master.start();
    await until(
      "the old master follows",
      () => info(master),
      ({ role }) => role === "slave",
    );
    await crowd.untilLeased();
    master = next;
  }
  await crowd.stop();
  expectNoRunTwice(crowd.leases);
  expect([...one.jumpsOf("main"), ...other.jumpsOf("main")]).toContain("epoch_changed");
});

test("jumps past everything that a promoted replica has missed", async () => {
  const group = await startSentinelRedis({ config: { appendonly: "yes", appendfsync: "always" } });
  const { coordinator, jumpsOf } = await redisCoordinatorAt(urlOf(group));
  await coordinator.initNamespace("main", INIT);
  const crowd = startCrowd([coordinator], ["main"]);
  await crowd.untilLeased();
  const [informed, lagging] = group.replicas as [RedisServer, RedisServer];
  // It missed some, not everything: a replica that comes back empty is a store that was emptied, and stopped.
  await untilCaughtUp(lagging, group.master);
  await lagging.kill("SIGKILL");
  const missedFrom = greatestRun(crowd.leases, "main");
  for (let more = 0; more < 5; more++) await crowd.untilLeased();
  await Promise.all([group.master.kill("SIGKILL"), informed.kill("SIGKILL")]);
  const leasedBefore = greatestRun(crowd.leases, "main");
  await lagging.start();
  await until(
    "the lagging replica is a master",
    () => info(lagging),
    ({ role }) => role === "master",
  );
  const kept = await command(lagging, "HGET", "callnumber:{main}:record", "c");
  // A plain counter would go on here, and repeat all that was leased since.
  expect(Number(kept)).toBeLessThan(leasedBefore);
  expect(missedFrom).toBeLessThan(leasedBefore);
  await informed.start();
  await crowd.untilLeased();
  await crowd.stop();
  expectNoRunTwice(crowd.leases);
  // The claim may have come before there was a quorum, and be found as one.
  expect(jumpsOf("main").length).toBeGreaterThan(0);
});

test("refuses at a master that its group has left, and goes over to the new one as soon as a sentinel tells of it", async () => {
  const group = await startSentinelRedis();
  const [told, ...others] = group.sentinels as [RedisServer, ...RedisServer[]];
  // Knows no other sentinel than the one that is frozen below.
  const url = sentinelStoreUrlAt(`${told.host}:${told.port}`, group.masterName);
  const { coordinator, jumpsOf } = await redisCoordinatorAt(url);
  await coordinator.initNamespace("main", INIT);
  const crowd = startCrowd([coordinator], ["main"]);
  await crowd.untilLeased();

  await told.kill("SIGSTOP");
  await leaveAlone(group.master);
  const next = await group.waitForMaster(group.master, others);
  await crowd.untilRefused("main", "quorum_missing");
  const before = crowd.leases.length;
  await crowd.untilRefused("main", "quorum_missing");
  expect(crowd.leases.slice(before)).toEqual([]);
  expect((await info(group.master)).role).toBe("master");

  await told.kill("SIGCONT");
  await crowd.untilLeased();
  await crowd.stop();
  expectNoRunTwice(crowd.leases);
  expect(jumpsOf("main")).toContain("epoch_changed");
  const mark = Number(await command(next, "HGET", "callnumber:{main}:record", "c"));
  expect(mark).toBeGreaterThanOrEqual(greatestRun(crowd.leases, "main"));
});

test("believes the sentinel that has seen the latest fail-over, not the first that answers", async () => {
  const group = await startSentinelRedis();
  const stranger = await startRedisServer();
  const stale = await startRedisServer({
    sentinel: true,
    config: {
      sentinel: [`monitor ${group.masterName} ${stranger.host} ${stranger.port} 1`, ...watching(group.masterName)],
    },
  });
  await command(group.sentinels[0] as RedisServer, "SENTINEL", "FAILOVER", group.masterName);
  const master = await group.waitForMaster(group.master);
  for (const hosts of [
    `${stale.host}:${stale.port},${group.sentinelHosts}`,
    `${group.sentinelHosts},${stale.host}:${stale.port}`,
  ]) {
    const store = await redisStoreAt(sentinelStoreUrlAt(hosts, group.masterName));
    const [finding] = await store.preflight();
    expect(finding?.what).toContain(`${master.host}:${master.port}`);
  }
});

test("says which sentinels did not answer, and which know no such master", async () => {
  const group = await startSentinelRedis();
  await expect(redisStoreAt(sentinelStoreUrlAt(group.sentinelHosts, "other"))).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringMatching(/the master "other".*No such master/),
  });
  const nobody = "127.0.0.1:1,127.0.0.1:2";
  await expect(redisStoreAt(sentinelStoreUrlAt(nobody, group.masterName))).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringMatching(/127\.0\.0\.1:1 can't be reached.*127\.0\.0\.1:2 can't be reached/),
  });
});

/** Cuts a master off from replicas and sentinels, and not from coordinators: as a partition does with the coordinator on its side. */
async function leaveAlone(master: RedisServer): Promise<void> {
  for (const user of [REPLICA.name, SENTINEL.name]) {
    await command(master, "ACL", "SETUSER", user, "off");
    await command(master, "CLIENT", "KILL", "USER", user);
  }
}
