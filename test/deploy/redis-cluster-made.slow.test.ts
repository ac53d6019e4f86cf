/** A Cluster made with redis-cli by the user that we ship for that, of servers that let nobody else in but our users. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { beforeEach, expect, inject, test } from "vitest";
import { requestAfter } from "../../packages/coordinator/test/leasing-crowd.js";
import { redisCoordinatorAt } from "../../packages/coordinator/test/redis-coordinator.js";
import { environmentFor, type RedisBinary } from "../redis/redis-binary.js";
import { command, info, linesByName, until } from "../redis/redis-command.js";
import { CLUSTER, clusterStoreUrlAt } from "../redis/shipped-users.js";
import { ownServerUnavailable, type RedisServer, startRedisServer } from "../redis/test-redis.js";

const NODE_COUNT = 6;
const holder = { name: "importer", host: "mail-1", pid: 4711, labels: {} };

beforeEach((context) => {
  const reason =
    ownServerUnavailable() ?? (existsSync(redisCli()) ? undefined : "no redis-cli beside the redis-server");
  context.skip(reason !== undefined, reason);
});

test("redis-cli makes a Cluster as the user cluster, which is refused nothing, and a coordinator leases from it", async () => {
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
