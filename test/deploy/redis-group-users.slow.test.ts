/**
 * Groups whose servers have the users that we ship and no other way in: they follow, are watched, change sides and come back, and a
 * coordinator goes on leasing, all of them with the rights of make-acl.sh alone.
 */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { beforeEach, expect, inject, test } from "vitest";
import { expectNoRunTwice, RATE, requestAfter, startCrowd } from "../../packages/coordinator/test/leasing-crowd.js";
import { redisCoordinatorAt } from "../../packages/coordinator/test/redis-for-test.js";
import { startClusterRedis } from "../redis/cluster-redis.js";
import { environmentFor, type RedisBinary } from "../redis/redis-binary.js";
import { command, info, linesByName, until } from "../redis/redis-command.js";
import { startSentinelRedis } from "../redis/sentinel-redis.js";
import { CLUSTER, clusterStoreUrlAt, sentinelStoreUrlAt } from "../redis/shipped-users.js";
import { ownServerUnavailable, type RedisServer, startRedisServer } from "../redis/test-redis.js";

/** Of ten names each of three masters has some. */
const NAMES = Array.from({ length: 10 }, (_, index) => `list-${index}`);

beforeEach((context) => {
  const reason = ownServerUnavailable();
  context.skip(reason !== undefined, reason);
});

test("a fail-over of Sentinel and the return of the old master need no right that the shipped users do not have", async () => {
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

test("the fail-overs of a Cluster, automatic and manual, need no right that the shipped users do not have", async () => {
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

/** Expects that clients without a user are rejected, that these users and the test's own are connected, and that none was denied a command. */
async function expectOnly(nodes: readonly RedisServer[], users: readonly string[]): Promise<void> {
  const seen = new Set<string>();
  for (const node of nodes) {
    const clients = String(await command(node, "CLIENT", "LIST"));
    for (const [, user = ""] of clients.matchAll(/ user=(\S+)/g)) seen.add(user);
    expect(await command(node, "ACL", "LOG")).toEqual([]);
    await expect(command({ url: `redis://${node.host}:${node.port}` }, "PING")).rejects.toThrow(/NOAUTH/);
  }
  // A replica runs what its master sends without a user.
  expect([...seen].sort()).toEqual(["(superuser)", ...users, "tester"]);
}

const NODE_COUNT = 6;
const holder = { name: "importer", host: "mail-1", pid: 4711, labels: {} };

test("redis-cli makes a Cluster as the user cluster, which is denied nothing, and a coordinator leases from it", async ({
  skip,
}) => {
  skip(!existsSync(redisCli()), "no redis-cli next to the redis-server");
  const nodes = await Promise.all(Array.from({ length: NODE_COUNT }, emptyNode));
  const hosts = nodes.map(({ host, port }) => `${host}:${port}`);
  await asClusterUser("create", ...hosts, "--cluster-replicas", "1", "--cluster-yes");
  for (const node of nodes) {
    const state = async () => linesByName(await command(node, "CLUSTER", "INFO"))["cluster_state"];
    await until("the Cluster is whole", state, (seen) => seen === "ok");
    const sides = () => info(node);
    await until(
      "each master has its replica",
      sides,
      (seen) =>
        "up" === (seen["master_link_status"] ?? "up") &&
        seen["connected_slaves"] === (seen["role"] === "master" ? "1" : "0"),
    );
  }
  const { coordinator } = await redisCoordinatorAt(clusterStoreUrlAt(hosts.join(",")));
  await coordinator.initNamespace("main", { nodeCount: 2 });
  expect(await coordinator.lease("main", { ...requestAfter(undefined), holder })).toMatchObject({ runCount: 1 });
  for (const node of nodes) expect(await command(node, "ACL", "LOG")).toEqual([]);
});

function emptyNode(): Promise<RedisServer> {
  const config = { "cluster-enabled": "yes", "repl-diskless-sync-delay": "0" };
  return startRedisServer({ config, morePorts: ["cluster-port"] });
}

/** @throws Error with what it said, when it fails. */
async function asClusterUser(...words: readonly string[]): Promise<void> {
  const env = { ...environmentFor(binary().libraryPath), REDISCLI_AUTH: CLUSTER.password };
  await promisify(execFile)(redisCli(), ["--user", CLUSTER.name, "--cluster", ...words], { env });
}

function redisCli(): string {
  return join(dirname(binary().executable), "redis-cli");
}

function binary(): RedisBinary {
  return inject("redis").binary as RedisBinary;
}
