/**
 * Groups whose servers have the users that we ship and no other way in: they follow, are watched, change sides and come back, and a
 * coordinator goes on leasing, all of them with the rights of make-acl.sh alone.
 */
import { beforeEach, expect, test } from "vitest";
import { expectNoRunTwice, RATE, startCrowd } from "../../packages/coordinator/test/leasing-crowd.js";
import { redisCoordinatorAt } from "../../packages/coordinator/test/redis-coordinator.js";
import { startClusterRedis } from "../redis/cluster-redis.js";
import { command, info, until } from "../redis/redis-command.js";
import { startSentinelRedis } from "../redis/sentinel-redis.js";
import { clusterStoreUrlAt, sentinelStoreUrlAt } from "../redis/shipped-users.js";
import { ownServerUnavailable, type RedisServer } from "../redis/test-redis.js";

/** Of ten names each of three masters has some. */
const NAMES = Array.from({ length: 10 }, (_, index) => `list-${index}`);

beforeEach((context) => {
  const reason = ownServerUnavailable();
  context.skip(reason !== undefined, reason);
});

test("a fail-over and the return of the old master need no right that the shipped users do not have", async () => {
  const group = await startSentinelRedis();
  const { coordinator } = await redisCoordinatorAt(sentinelStoreUrlAt(group.sentinelHosts, group.masterName));
  await coordinator.initNamespace("main", { nodeCount: 3, rate: RATE });
  const crowd = startCrowd([coordinator], ["main"]);
  await crowd.untilLeased();
  const former = group.master;
  await former.kill("SIGKILL");
  await group.waitForMaster(former);
  await crowd.untilLeased();
  await former.start();
  await untilFollowing(former);
  await crowd.untilLeased();
  await expectOnly(group.nodes, ["callnumber", "replica", "sentinel"]);
  await crowd.stop();
  expectNoRunTwice(crowd.leases);
});

test("nor do those of a Cluster, by itself and by hand", async () => {
  const cluster = await startClusterRedis();
  const former = cluster.nodes[0] as RedisServer;
  const { coordinator } = await redisCoordinatorAt(clusterStoreUrlAt(`${former.host}:${former.port}`));
  for (const name of NAMES) await coordinator.initNamespace(name, { nodeCount: 2, rate: RATE });
  const crowd = startCrowd([coordinator], NAMES);
  await crowd.untilLeased();
  const [next] = (await cluster.replicasOf(former)) as [RedisServer];
  await former.kill("SIGKILL");
  await until(
    "the replica is a master",
    () => info(next),
    ({ role }) => role === "master",
  );
  await former.start();
  await untilFollowing(former);
  await crowd.untilLeased();
  await cluster.failover(former);
  await cluster.untilAgreed();
  await crowd.untilLeased();
  await expectOnly(cluster.nodes, ["callnumber", "replica"]);
  await crowd.stop();
  expectNoRunTwice(crowd.leases);
});

async function untilFollowing(node: RedisServer): Promise<void> {
  await until(
    "the old master follows, and is linked",
    () => info(node),
    ({ role, master_link_status }) => role === "slave" && master_link_status === "up",
  );
}

/** Strangers are shut out; these users are there beside the tests' own, all of them somewhere; and nobody was refused anything. */
async function expectOnly(nodes: readonly RedisServer[], users: readonly string[]): Promise<void> {
  const seen = new Set<string>();
  for (const node of nodes) {
    const clients = String(await command(node, "CLIENT", "LIST"));
    for (const [, user = ""] of clients.matchAll(/ user=(\S+)/g)) seen.add(user);
    expect(await command(node, "ACL", "LOG")).toEqual([]);
    await expect(command({ url: `redis://${node.host}:${node.port}` }, "PING")).rejects.toThrow(/NOAUTH/);
  }
  // What a replica hears from its master is run as nobody.
  expect([...seen].sort()).toEqual(["(superuser)", ...users, "tester"]);
}
