/** The rights that make-acl.sh gives: each is needed for some work, and no work needs another one. Tried on a Cluster, which needs the most. */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Coordinator, openStore, parseStoreUrl, type Store } from "@callnumber/coordinator";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { beforeEach, expect, test } from "vitest";
import { callnumber, folderForTest, REPOSITORY } from "../processes/command.js";
import { type ClusterRedis, startClusterRedis } from "../redis/cluster-redis.js";
import { command } from "../redis/redis-command.js";
import { ownServerUnavailable, type RedisServer } from "../redis/test-redis.js";

const PASSWORD = randomBytes(32).toString("hex");
/** The server allows it to every client, with or without the right. */
const ALWAYS_ALLOWED = "+hello";

let cluster: ClusterRedis;
let namespaces = 0;

beforeEach(async (context) => {
  const reason = ownServerUnavailable();
  context.skip(reason !== undefined, reason);
  cluster = await startClusterRedis();
});

test("the coordinator's rights are enough for all its work, and it tries nothing beyond them", async () => {
  await give("callnumber", rightsOf("callnumber"));
  await expect(work("callnumber")).resolves.toBeUndefined();
  for (const node of cluster.nodes) expect(await command(node, "ACL", "LOG")).toEqual([]);
});

test("each of the coordinator's rights is needed: without it some work fails", async () => {
  const rights = rightsOf("callnumber");
  const needless: string[] = [];
  for (const right of rights.filter((one) => one.startsWith("+") && one !== ALWAYS_ALLOWED)) {
    const others = rights.filter((one) => one !== right);
    await give("callnumber", others);
    // A script that every server knows already is never sent whole.
    for (const node of cluster.nodes) await command(node, "SCRIPT", "FLUSH");
    await work("callnumber").then(
      () => needless.push(right),
      () => {},
    );
  }
  expect(needless).toEqual([]);
});

test("the operator's rights are enough to inspect everything and to recover, which the coordinator's are not", async () => {
  for (const user of ["callnumber", "operator"]) await give(user, rightsOf(user));
  // As on a server without the file.
  for (const node of cluster.nodes) await command(node, "ACL", "SETUSER", "default", "on", "nopass");
  await work("callnumber");
  const namespace = `rights-${namespaces}`;
  const doctor = await callnumber(["doctor", "--store", urlOf("operator"), "--json"]);
  expect(JSON.parse(doctor.stdout).findings).toContainEqual(expect.objectContaining({ override: "default-user" }));
  expect(doctor.stdout).not.toContain("unseen-configuration");

  const recover = async (user: string) => {
    const directory = await folderForTest();
    const store = ["--store", urlOf(user), "--namespace", namespace, "--checkpoint-dir", directory];
    return await callnumber(["recover", "--apply", ...store]);
  };
  const holders = `callnumber:{${namespace}}:holders`;
  await command(await cluster.masterOf(holders), "SET", holders, "of another program");
  const before = await recordOf(namespace);
  expect(await recover("callnumber")).not.toMatchObject({ code: 0 });
  expect(await recordOf(namespace)).toEqual(before);
  expect(await recover("operator")).toMatchObject({ code: 0, stdout: expect.stringContaining(`${holders}:foreign:`) });
  expect(await recordOf(namespace)).not.toEqual(before);
});

/** All that a coordinator does with a store, once, in a namespace of its own. */
async function work(user: string): Promise<void> {
  const namespace = `rights-${++namespaces}`;
  const { store } = await openStore(parseStoreUrl(urlOf(user)), { create: false });
  const coordinator = new Coordinator({ store, name: "rights" });
  try {
    const made = await coordinator.initNamespace(namespace, { nodeCount: 2 });
    coordinator.startHeartbeat();
    const holder = { name: "importer", host: "mail-1", pid: 1, labels: {} };
    const nonce = randomBytes(12).toString("base64url");
    const request = { runCount: 1, nonce, holder, lastRun: null, receipt: null, sentAtMs: Date.now() };
    const { firstRun } = await coordinator.lease(namespace, request);
    await coordinator.report(namespace, firstRun, { nonce, lastSequence: 1, state: "open" });
    await coordinator.run(namespace, firstRun);
    await coordinator.inspect(namespace, encodeCallNumber({ version: 0, run: firstRun, sequence: 1 }));
    await coordinator.lease(namespace, { ...request, nonce: randomBytes(12).toString("base64url") });
    await trimOldest(store, namespace, made.storeId);
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
async function trimOldest(store: Store, namespace: string, storeId: string): Promise<void> {
  await store.setRetentionDays(namespace, 90);
  const { through: trimmedThrough } = await store.readRetention(namespace);
  const [oldest] = await store.leases(namespace, { from: trimmedThrough + 1, direction: "oldest_first", limit: 1 });
  const { firstRun: through = 0, leasedAtMs = 0, progress } = oldest ?? {};
  const leases = [{ lastLedgerId: through, reportedAtMs: progress?.reportedAtMs ?? null }];
  expect(await store.trimLedger(namespace, { storeId, trimmedThrough, through, leasedAtMs, leases })).toBe(true);
}

function rightsOf(user: string): string[] {
  const { stdout } = spawnSync("sh", [join(REPOSITORY, "deploy", "redis", "make-acl.sh")], {
    encoding: "utf8",
    env: { PATH: process.env.PATH, CALLNUMBER_REDIS_PASSWORD: PASSWORD, CALLNUMBER_REDIS_OPERATOR_PASSWORD: PASSWORD },
  });
  const line = stdout.split("\n").find((one) => one.startsWith(`user ${user} `));
  const words = line?.split(" ").slice(2) ?? [];
  expect(words.length).toBeGreaterThan(10);
  return words;
}

/** Replaces what the Cluster has from the file, so that a right can be missing. */
async function give(user: string, rights: readonly string[]): Promise<void> {
  for (const node of cluster.nodes) await command(node, "ACL", "SETUSER", user, "reset", ...rights);
}

function urlOf(user: string): string {
  const { host, port } = cluster.nodes[0] as RedisServer;
  return `redis-cluster://${user}:${PASSWORD}@${host}:${port}`;
}

async function recordOf(namespace: string): Promise<unknown> {
  const key = `callnumber:{${namespace}}:record`;
  return command(await cluster.masterOf(key), "HMGET", key, "c", "g", "p");
}
