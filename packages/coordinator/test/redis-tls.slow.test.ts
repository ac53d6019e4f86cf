/**
 * TLS to a Redis server, a Sentinel group and a Cluster, with real certificates: which servers are believed, which are refused and with
 * which message, and that nothing is leased then. Every server is verified, also those that another server named.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { callnumberProcess } from "../../../test/processes/command.js";
import { startClusterRedis } from "../../../test/redis/cluster-redis.js";
import { command } from "../../../test/redis/redis-command.js";
import type { LaunchNode } from "../../../test/redis/replicated-redis.js";
import { type SentinelRedis, startSentinelRedis } from "../../../test/redis/sentinel-redis.js";
import { clusterStoreUrlAt, sentinelStoreUrlAt, storeUrlAt } from "../../../test/redis/shipped-users.js";
import { ownServerUnavailable, type RedisServer, startRedisServer } from "../../../test/redis/test-redis.js";
import { type CertificateAndKey, newAuthority } from "../../../test/tls/certificates.js";
import { replaceFile, type TlsFiles, writeTlsFiles } from "../../../test/tls/files.js";
import { expectNoRunTwice, RATE, startCrowd } from "./leasing-crowd.js";
import { redisCoordinatorAt, redisStoreAt } from "./redis-coordinator.js";
import { newStoreAt } from "./redis-for-test.js";

const authority = newAuthority();
const others = newAuthority("others");

/** Of ten names each of three masters has some. */
const NAMES = Array.from({ length: 10 }, (_, index) => `list-${index}`);
const UNKNOWN = /^store_unavailable: .*nobody known here has signed its certificate/;

let folder: string;
/** Of the authority that the server's certificate is of. */
let ca: string;
/** What the servers of a group believe of each other: all that these tests issue. */
let bothCas: string;

beforeEach((context) => {
  const reason = ownServerUnavailable();
  context.skip(reason !== undefined, reason);
  folder = mkdtempSync(join(tmpdir(), "callnumber-redis-tls-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  ca = replaceFile(join(folder, "ca.crt"), authority.certificate);
  bothCas = replaceFile(join(folder, "both.crt"), authority.certificate + others.certificate);
});

interface TlsRedis {
  readonly server: RedisServer;
  /** With TLS; `query` are settings of the store's URL. */
  urlWith(query: string): string;
}

/** It listens with TLS on one port and without on another. */
async function tlsRedis({
  pair = authority.issue(),
  asksForCertificates = false,
}: {
  readonly pair?: CertificateAndKey;
  readonly asksForCertificates?: boolean;
} = {}): Promise<TlsRedis> {
  const files = writeTlsFiles(folder, pair, "redis");
  const server = await startRedisServer({
    config: {
      "tls-cert-file": files.certificate,
      "tls-key-file": files.key,
      "tls-ca-cert-file": ca,
      "tls-auth-clients": asksForCertificates ? "yes" : "no",
    },
    morePorts: ["tls-port"],
  });
  const url = storeUrlAt("127.0.0.1", Number(tlsPortOf(server))).replace("redis:", "rediss:");
  return { server, urlWith: (query) => `${url}?${query}` };
}

function tlsPortOf({ directory }: RedisServer): string {
  const [, port = ""] = /^tls-port (\d+)$/m.exec(readFileSync(join(directory, "redis.conf"), "utf8")) ?? [];
  return port;
}

/** Why a store can't be opened. */
async function failureToOpen(url: string): Promise<string> {
  return await redisStoreAt(url).then(
    () => "it was let in",
    (error: { code?: string; message?: string }) => `${error.code}: ${error.message}`,
  );
}

/** Nothing of the store changes, and this is why. */
async function refusal({ server }: TlsRedis, url: string): Promise<string> {
  const before = await contents(server);
  const failure = await failureToOpen(url);
  expect(await contents(server)).toEqual(before);
  return failure;
}

async function contents(server: RedisServer): Promise<readonly unknown[]> {
  const record = await command(server, "HGETALL", "callnumber:{main}:record");
  // With it each of the coordinator's connections begins: how many came as far as to say a word.
  const stats = String(await command(server, "INFO", "commandstats"));
  const [, beginnings = "0"] = /^cmdstat_hello:calls=(\d+)/m.exec(stats) ?? [];
  return [await command(server, "DBSIZE"), record, Number(beginnings)];
}

describe("a server's certificate", () => {
  test("of the authority that the URL names is believed, and leases come over it", async () => {
    const redis = await tlsRedis();
    const { lease } = await newStoreAt(redis.urlWith(`ca=${ca}`));
    expect((await lease()).firstRun).toBe(1);
    expect((await lease()).firstRun).toBe(2);
  });

  test.each<[string, CertificateAndKey, RegExp]>([
    ["of another authority", others.issue(), /nobody known here has signed its certificate: .*\?ca=FILE/],
    ["that has ended", authority.issue({ untilMs: Date.now() - 1_000 }), /its certificate has ended/],
    ["that has not begun", authority.issue({ fromMs: Date.now() + 86_400_000 }), /its certificate has not begun/],
    ["for another host", authority.issue({ names: ["elsewhere.example"] }), /for another host name/],
  ])("%s is refused, and nothing is sent", async (_, pair, reason) => {
    const redis = await tlsRedis({ pair });
    await newStoreAt(redis.server.url);
    const told = await refusal(redis, redis.urlWith(`ca=${ca}`));
    expect(told).toMatch(/^store_unavailable: Redis at 127\.0\.0\.1:\d+ can't be reached: /);
    expect(told).toMatch(reason);
  });

  test("of no authority that Node knows is refused when the URL names none", async () => {
    const redis = await tlsRedis();
    expect(await refusal(redis, redis.urlWith("prefix=callnumber:"))).toMatch(/nobody known here has signed/);
  });

  test("is refused also where the environment tells Node to believe everybody", async () => {
    const redis = await tlsRedis({ pair: others.issue() });
    const env = { NODE_TLS_REJECT_UNAUTHORIZED: "0" };
    const { code, stderr } = await callnumberProcess(["init", "--store", redis.urlWith(`ca=${ca}`)], { env });
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("nobody known here has signed"),
    });
    expect(await contents(redis.server)).toEqual([0, [], 0]);
  });

  test("that is exchanged for one of another authority ends the leasing", async () => {
    const redis = await tlsRedis();
    const { lease } = await newStoreAt(redis.urlWith(`ca=${ca}`));
    expect((await lease()).firstRun).toBe(1);
    await restartWith(redis, others.issue());
    const seen = new Set<string>();
    await expect
      .poll(async () => {
        await lease().catch((error: Error) => seen.add(error.message));
        return [...seen].join("\n");
      })
      .toMatch(/nobody known here has signed/);
    expect(await contents(redis.server)).toEqual([0, [], 0]);
  });
});

async function restartWith({ server }: TlsRedis, pair: CertificateAndKey): Promise<void> {
  await server.stop();
  writeTlsFiles(folder, pair, "redis");
  await server.start();
}

describe("a server that asks for a certificate", () => {
  const shown = ({ certificate, key }: TlsFiles) => `ca=${ca}&certificate=${certificate}&key=${key}`;

  test("lets in the coordinator that shows one of its authority", async () => {
    const redis = await tlsRedis({ asksForCertificates: true });
    const own = writeTlsFiles(folder, authority.issue({ names: ["coordinator"] }), "coordinator");
    const { lease } = await newStoreAt(redis.urlWith(shown(own)));
    expect((await lease()).firstRun).toBe(1);
  });

  test("refuses one that shows none, or one of another authority, or one that has ended", async () => {
    const redis = await tlsRedis({ asksForCertificates: true });
    expect(await refusal(redis, redis.urlWith(`ca=${ca}`))).toMatch(/^store_unavailable: .*it asks for a certificate/);
    const foreign = writeTlsFiles(folder, others.issue(), "foreign");
    expect(await refusal(redis, redis.urlWith(shown(foreign)))).toMatch(/it does not know who has signed/);
    const ended = writeTlsFiles(folder, authority.issue({ untilMs: Date.now() - 1_000 }), "ended");
    expect(await refusal(redis, redis.urlWith(shown(ended)))).toMatch(/the coordinator's certificate has ended/);
  });

  test.each<[string, (files: TlsFiles) => string, RegExp]>([
    [
      "that is not there",
      ({ certificate }) => `certificate=${certificate}&key=/nonexistent/key`,
      /key can't be read: ENOENT/,
    ],
    [
      "that others may read",
      ({ certificate, key }) => `certificate=${certificate}&key=${replaceFile(key, "x", 0o644)}`,
      /mode is 0644; .*chmod 600/,
    ],
    [
      "of another certificate",
      ({ certificate }) => `certificate=${certificate}&key=${writeTlsFiles(folder, authority.issue(), "x").key}`,
      /key values mismatch/,
    ],
    ["with an authority that is no certificate", ({ key }) => `ca=${key}`, /holds no certificate in PEM/],
  ])("is not asked with a key %s", async (_, query, reason) => {
    const redis = await tlsRedis();
    const files = writeTlsFiles(folder, authority.issue(), "coordinator");
    const told = await refusal(redis, redis.urlWith(query(files)));
    expect(told).toMatch(/^store_unavailable: /);
    expect(told).toMatch(reason);
    expect(told).not.toContain("PRIVATE");
  });
});

test("a server that speaks no TLS at that port is refused, and told so", async () => {
  const redis = await tlsRedis();
  const plain = `${redis.server.storeUrl.replace("redis:", "rediss:")}?ca=${ca}`;
  expect(await refusal(redis, plain)).toMatch(/^store_unavailable: .*does not speak TLS there/);
});

test("a port that wants TLS refuses whoever comes without", async () => {
  const redis = await tlsRedis();
  const plain = redis.urlWith("").replace("rediss:", "redis:").replace("?", "");
  expect(await refusal(redis, plain)).toMatch(/^store_unavailable: .*(broke|closed|ECONNRESET)/);
});

/** Lines of redis.conf for a server with a certificate of its own. */
function certified(name: string, signer = authority): Record<string, string> {
  const { certificate, key } = writeTlsFiles(folder, signer.issue(), name);
  return {
    "tls-cert-file": certificate,
    "tls-key-file": key,
    "tls-ca-cert-file": bothCas,
    "tls-auth-clients": "no",
  };
}

describe("a Sentinel group behind TLS", () => {
  /** Nothing in it speaks anything else. `ofOthers`: whose certificates are of an authority that the store does not believe. */
  async function group(ofOthers: "none" | "nodes" | "sentinels" = "none"): Promise<SentinelRedis> {
    const launch: LaunchNode = (options, index) => {
      const kind = options.sentinel ? "sentinels" : "nodes";
      return startRedisServer({
        ...options,
        tls: certified(`${kind}-${index}`, kind === ofOthers ? others : authority),
      });
    };
    return await startSentinelRedis({ launch });
  }

  const plainUrlOf = ({ sentinelHosts, masterName }: SentinelRedis) => sentinelStoreUrlAt(sentinelHosts, masterName);
  const urlOf = (redis: SentinelRedis) => `${plainUrlOf(redis).replace("redis-", "rediss-")}?ca=${ca}`;

  test("is leased from, and goes on at the new master when the old one is killed", async () => {
    const redis = await group();
    const { coordinator } = await redisCoordinatorAt(urlOf(redis));
    await coordinator.initNamespace("main", { nodeCount: 3, rate: RATE });
    const crowd = startCrowd([coordinator], ["main"]);
    await crowd.untilLeased();
    await redis.master.kill("SIGKILL");
    await redis.waitForMaster(redis.master);
    await crowd.untilLeased();
    await crowd.stop();
    expectNoRunTwice(crowd.leases);
  });

  test("has no other way in: without TLS nobody is answered", async () => {
    const redis = await group();
    await expect(failureToOpen(plainUrlOf(redis))).resolves.toMatch(/^store_unavailable: /);
  });

  test.each(["sentinels", "nodes"] as const)("is refused when its %s are not believed", async (which) => {
    const redis = await group(which);
    expect(await failureToOpen(urlOf(redis))).toMatch(UNKNOWN);
  });
});

describe("a Cluster behind TLS", () => {
  /**
   * A node tells a caller over TLS of the others' ports for TLS, and a test of those without. `ofOthers`: which node has a certificate of an
   * authority that the store does not believe.
   */
  async function cluster(ofOthers?: number) {
    const launch: LaunchNode = (options, index) => {
      const lines = certified(`node-${index}`, index === ofOthers ? others : authority);
      const config = { ...options.config, ...lines, "tls-cluster": "yes", "tls-replication": "yes" };
      return startRedisServer({ ...options, config, morePorts: [...(options.morePorts ?? []), "tls-port"] });
    };
    return await startClusterRedis({ launch });
  }

  const urlOf = (node: RedisServer) =>
    `${clusterStoreUrlAt(`127.0.0.1:${tlsPortOf(node)}`).replace("redis-", "rediss-")}?ca=${ca}`;

  test("is leased from at all its masters, and goes on at a replica that was made one", async () => {
    const redis = await cluster();
    const [first] = redis.nodes as [RedisServer];
    const { coordinator } = await redisCoordinatorAt(urlOf(first));
    for (const name of NAMES) await coordinator.initNamespace(name, { nodeCount: 2, rate: RATE });
    const owners = new Set(await Promise.all(NAMES.map((name) => redis.masterOf(`{${name}}`))));
    expect(owners.size).toBe(3);
    const crowd = startCrowd([coordinator], NAMES);
    await crowd.untilLeased();
    const [replica] = (await redis.replicasOf(first)) as [RedisServer];
    await redis.failover(replica);
    await redis.untilAgreed();
    await crowd.untilLeased();
    await crowd.stop();
    expectNoRunTwice(crowd.leases);
  });

  test("leases nothing at a node that is not believed, although one that is believed names it", async () => {
    const redis = await cluster(1);
    const [believed, stranger] = redis.nodes as [RedisServer, RedisServer];
    const nameAt = async (node: RedisServer) => {
      const owners = await Promise.all(NAMES.map((name) => redis.masterOf(`{${name}}`)));
      return NAMES[owners.indexOf(node)] as string;
    };
    const [own, foreign] = [await nameAt(believed), await nameAt(stranger)];
    const { coordinator } = await redisCoordinatorAt(urlOf(believed));
    await coordinator.initNamespace(own, { nodeCount: 2, rate: RATE });
    await expect(coordinator.initNamespace(foreign, { nodeCount: 2, rate: RATE })).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/nobody known here has signed its certificate/),
    });
    expect(await failureToOpen(urlOf(stranger))).toMatch(UNKNOWN);
  });
});
