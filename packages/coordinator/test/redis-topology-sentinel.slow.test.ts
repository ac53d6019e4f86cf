/**
 * A store on a Sentinel group: the master is found again automatically, and no failover leases a run twice.
 * Guarantees: G3 (docs/guarantees.md).
 */
import { beforeEach, expect, test } from "vitest";
import { command, info, untilInfo } from "../../../test/redis/redis-command.js";
import { type SentinelRedis, startSentinelRedis } from "../../../test/redis/sentinel-redis.js";
import { REPLICA, SENTINEL, sentinelStoreUrlAt, watching } from "../../../test/redis/shipped-users.js";
import { type RedisServer, startRedisServer } from "../../../test/redis/test-redis.js";
import { expectNoRunTwice, greatestRun, RATE, startCrowd } from "./leasing-crowd.js";
import { expectUsers, needsOwnServer, redisCoordinatorAt, storeAt } from "./redis-for-test.js";

/** Three data nodes: a step counts when one other node has it. */
const INIT = { nodeCount: 3, rate: RATE };

beforeEach(needsOwnServer);

/** Coordinators, and clients that lease from each. */
async function leasingOn(group: SentinelRedis, coordinatorCount = 1, sentinelHosts = group.sentinelHosts) {
  const url = sentinelStoreUrlAt(sentinelHosts, group.masterName);
  const parts = await Promise.all(Array.from({ length: coordinatorCount }, () => redisCoordinatorAt(url)));
  await parts[0]?.coordinator.initNamespace("main", INIT);
  const coordinators = parts.map(({ coordinator }) => coordinator);
  const crowd = startCrowd(coordinators, ["main"]);
  await crowd.untilLeased();
  /** Ends the test: no run was leased twice. Returns the reasons of the recoveries. */
  const endLeasing = async () => {
    await crowd.untilLeased();
    await crowd.stop();
    expectNoRunTwice(crowd.leases);
    return parts.flatMap(({ recoveriesOf }) => recoveriesOf("main"));
  };
  return { crowd, endLeasing };
}

test("leasing continues at the new master each time that a master is killed, without a repeated run", async () => {
  const group = await startSentinelRedis();
  const { crowd, endLeasing } = await leasingOn(group, 2);
  let master = group.master;
  for (let failover = 1; failover <= 2; failover++) {
    await master.kill("SIGKILL");
    const next = await group.waitForMaster(master);
    await crowd.untilLeased();
    // It comes back as a master, because no Sentinel has reached it yet, and is made a replica.
    await master.start();
    await untilInfo(master, { role: "slave", master_link_status: "up" });
    await crowd.untilLeased();
    master = next;
  }
  await expectUsers(group.nodes, ["callnumber", "replica", "sentinel"]);
  expect(await endLeasing()).toContain("epoch_changed");
});

test("a master that its group has left leases nothing, and leasing continues as soon as a Sentinel names the new one", async () => {
  const group = await startSentinelRedis();
  const [known, ...others] = group.sentinels as [RedisServer, ...RedisServer[]];
  // The coordinator knows no other Sentinel than the one that is frozen below.
  const { crowd, endLeasing } = await leasingOn(group, 1, `${known.host}:${known.port}`);
  await known.kill("SIGSTOP");
  await leaveAlone(group.master);
  const next = await group.waitForMaster(group.master, others);
  await crowd.untilRefused("main", "quorum_missing");
  const before = crowd.leases.length;
  await crowd.untilRefused("main", "quorum_missing");
  expect(crowd.leases.slice(before)).toEqual([]);
  expect((await info(group.master)).role).toBe("master");

  await known.kill("SIGCONT");
  expect(await endLeasing()).toContain("epoch_changed");
  const mark = Number(await command(next, "HGET", "callnumber:{main}:record", "c"));
  expect(mark).toBeGreaterThanOrEqual(greatestRun(crowd.leases, "main"));
});

test("the Sentinel that has seen the latest failover is believed, not the first that replies", async () => {
  const group = await startSentinelRedis();
  const foreign = await startRedisServer();
  const monitor = `monitor ${group.masterName} ${foreign.host} ${foreign.port} 1`;
  const stale = await startRedisServer({
    sentinel: true,
    config: { sentinel: [monitor, ...watching(group.masterName)] },
  });
  await command(group.sentinels[0] as RedisServer, "SENTINEL", "FAILOVER", group.masterName);
  const master = await group.waitForMaster(group.master);
  const other = `${stale.host}:${stale.port}`;
  for (const hosts of [`${other},${group.sentinelHosts}`, `${group.sentinelHosts},${other}`]) {
    const store = await storeAt(sentinelStoreUrlAt(hosts, group.masterName));
    const [finding] = await store.preflight();
    expect(finding?.what).toContain(`${master.host}:${master.port}`);
  }
});

test("the error names the Sentinels that did not reply, and those that know no such master", async () => {
  const group = await startSentinelRedis();
  await expect(storeAt(sentinelStoreUrlAt(group.sentinelHosts, "other"))).rejects.toMatchObject({
    code: "store_unavailable",
    message: expect.stringMatching(/the master "other".*No such master/),
  });
  const noServers = "127.0.0.1:1,127.0.0.1:2";
  await expect(storeAt(sentinelStoreUrlAt(noServers, group.masterName))).rejects.toMatchObject({
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
