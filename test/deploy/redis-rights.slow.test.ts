/** The rights that make-acl.sh gives, on a Cluster, which needs the most: each is needed for some work, and no work needs another one. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { Coordinator, openStore, parseStoreUrl, type Store } from "@callnumber/coordinator";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { beforeEach, expect, inject, test } from "vitest";
import { requestAfter } from "../../packages/coordinator/test/leasing-crowd.js";
import { needsOwnServer, redisCoordinatorAt } from "../../packages/coordinator/test/redis-for-test.js";
import { type ClusterRedis, startClusterRedis } from "../redis/cluster-redis.js";
import { environmentFor, type RedisBinary } from "../redis/redis-binary.js";
import { command, info, linesByName, until } from "../redis/redis-command.js";
import { CLUSTER, clusterStoreUrlAt, shippedUsers } from "../redis/shipped-users.js";
import { type RedisServer, startRedisServer } from "../redis/test-redis.js";

/** The server allows it to every client, with or without the right. */
const ALWAYS_ALLOWED = "+hello";

beforeEach(needsOwnServer);

test("the coordinator's rights are enough for all its work, it tries nothing beyond them, and each is needed", async () => {
  const cluster = await startClusterRedis();
  let namespaceCount = 0;
  const work = () => doAllWork(cluster, `rights-${++namespaceCount}`);
  await work();
  for (const node of cluster.nodes) expect(await command(node, "ACL", "LOG")).toEqual([]);
  const line = shippedUsers()
    .split("\n")
    .find((one) => one.startsWith("user callnumber "));
  const rights = line?.split(" ").slice(2) ?? [];
  expect(rights.length).toBeGreaterThan(10);
  const needless: string[] = [];
  for (const right of rights.filter((one) => one.startsWith("+") && one !== ALWAYS_ALLOWED)) {
    const others = rights.filter((one) => one !== right);
    for (const node of cluster.nodes) await command(node, "ACL", "SETUSER", "callnumber", "reset", ...others);
    // A script that every server knows already is never sent whole.
    for (const node of cluster.nodes) await command(node, "SCRIPT", "FLUSH");
    await work().then(
      () => needless.push(right),
      () => {},
    );
  }
  expect(needless).toEqual([]);
});

test("redis-cli makes a Cluster as the user cluster, which is denied nothing, and a coordinator leases from it", async ({
  skip,
}) => {
  const { executable, libraryPath } = inject("redis").binary as RedisBinary;
  const redisCli = join(dirname(executable), "redis-cli");
  skip(!existsSync(redisCli), "no redis-cli next to the redis-server");
  const config = { "cluster-enabled": "yes", "repl-diskless-sync-delay": "0" };
  const started = Array.from({ length: 6 }, () => startRedisServer({ config, morePorts: ["cluster-port"] }));
  const nodes = await Promise.all(started);
  const hosts = nodes.map(({ host, port }) => `${host}:${port}`);
  const words = ["--user", CLUSTER.name, "--cluster", "create", ...hosts, "--cluster-replicas", "1", "--cluster-yes"];
  const env = { ...environmentFor(libraryPath), REDISCLI_AUTH: CLUSTER.password };
  await promisify(execFile)(redisCli, words, { env });
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
  const holder = { name: "importer", host: "mail-1", pid: 4711, labels: {} };
  expect(await coordinator.lease("main", { ...requestAfter(undefined), holder })).toMatchObject({ runCount: 1 });
  for (const node of nodes) expect(await command(node, "ACL", "LOG")).toEqual([]);
});

/** All that a coordinator does with a store, once, in a namespace of its own. */
async function doAllWork({ nodes: [node] }: ClusterRedis, namespace: string): Promise<void> {
  const { host, port } = node as RedisServer;
  const { store } = await openStore(parseStoreUrl(clusterStoreUrlAt(`${host}:${port}`)), { create: false });
  const coordinator = new Coordinator({ store, name: "rights" });
  try {
    const made = await coordinator.initNamespace(namespace, { nodeCount: 2 });
    coordinator.startHeartbeat();
    const holder = { name: "importer", host: "mail-1", pid: 1, labels: {} };
    const nonce = randomBytes(12).toString("base64url");
    const request = { runCount: 1, nonce, holder, lastRun: null, proof: null, sentAtMs: Date.now() };
    const { firstRun } = await coordinator.lease(namespace, request);
    await coordinator.report(namespace, firstRun, { nonce, lastSequence: 1, state: "open" });
    await coordinator.run(namespace, firstRun);
    await coordinator.inspect(namespace, encodeCallNumber({ version: 0, run: firstRun, sequence: 1 }));
    await coordinator.lease(namespace, { ...request, nonce: randomBytes(12).toString("base64url") });
    await trimOldest(store, namespace);
    await coordinator.inspect(namespace, "00000000");
    expect(await coordinator.namespaces()).toContainEqual(expect.objectContaining({ namespace }));
    await coordinator.status(namespace);
    expect(made.storeId).toBe((await store.readNamespace(namespace)).storeId);
    expect((await coordinator.assertReady()).namespaces).toContain(namespace);
  } finally {
    await coordinator.stopHeartbeat();
    await store.close();
  }
}

/** As a coordinator does, once the lease is in a file. */
async function trimOldest(store: Store, namespace: string): Promise<void> {
  await store.setRetentionDays(namespace, 90);
  const { through: trimmedThrough } = await store.readRetention(namespace);
  const leases = await store.leases(namespace, { from: trimmedThrough + 1, direction: "oldest_first", limit: 1 });
  const { firstRun: through = 0, leasedAtMs = 0 } = leases[0] ?? {};
  const record = await store.readNamespace(namespace);
  expect(await store.trimLedger(namespace, { record, trimmedThrough, through, leasedAtMs, leases })).toBe(true);
}
