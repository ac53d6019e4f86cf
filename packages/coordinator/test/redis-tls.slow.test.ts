/**
 * TLS to a Redis server, a Sentinel group and a Cluster, with real certificates: which servers are trusted, which are rejected and with
 * which message, and that nothing is leased then. Every server is verified, also those that another server named.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { callnumberProcess } from "../../../test/processes/command.js";
import { startClusterRedis } from "../../../test/redis/cluster-redis.js";
import { command, hashAt } from "../../../test/redis/redis-command.js";
import type { LaunchNode } from "../../../test/redis/replicated-redis.js";
import { type SentinelRedis, startSentinelRedis } from "../../../test/redis/sentinel-redis.js";
import { clusterStoreUrlAt, sentinelStoreUrlAt, storeUrlAt } from "../../../test/redis/shipped-users.js";
import { type RedisServer, startRedisServer } from "../../../test/redis/test-redis.js";
import { type CertificateAndKey, newAuthority } from "../../../test/tls/certificates.js";
import { replaceFile, writeTlsFiles } from "../../../test/tls/files.js";
import { expectNoRunTwice, RATE, startCrowd } from "./leasing-crowd.js";
import { needsOwnServer, newStoreAt, redisCoordinatorAt, storeAt } from "./redis-for-test.js";

const authority = newAuthority();
const others = newAuthority("others");
const expired = () => authority.issue({ untilMs: Date.now() - 1_000 });

/** Of ten names each of three masters has some. */
const NAMES = Array.from({ length: 10 }, (_, index) => `list-${index}`);
const UNKNOWN = /^store_unavailable: .*its certificate is of an authority that is not known here: .*\?ca=FILE/;

let folder: string;
/** The authority of the server's certificate. */
let ca: string;
/** The authorities that the servers of a group trust. */
let bothCas: string;

beforeEach((context) => {
  needsOwnServer(context);
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

interface TlsRedisOptions {
  readonly pair?: CertificateAndKey;
  readonly requiresCertificates?: boolean;
}

/** It listens with TLS on one port and without on another. */
async function tlsRedis({
  pair = authority.issue(),
  requiresCertificates = false,
}: TlsRedisOptions = {}): Promise<TlsRedis> {
  const files = writeTlsFiles(folder, pair, "redis");
  const config = {
    "tls-cert-file": files.certificate,
    "tls-key-file": files.key,
    "tls-ca-cert-file": ca,
    "tls-auth-clients": requiresCertificates ? "yes" : "no",
  };
  const server = await startRedisServer({ config, morePorts: ["tls-port"] });
  const url = storeUrlAt("127.0.0.1", Number(tlsPortOf(server))).replace("redis:", "rediss:");
  return { server, urlWith: (query) => `${url}?${query}` };
}

function tlsPortOf({ directory }: RedisServer): string {
  return /^tls-port (\d+)$/m.exec(readFileSync(join(directory, "redis.conf"), "utf8"))?.[1] ?? "";
}

/** Why a store can't be opened. */
async function failureToOpen(url: string): Promise<string> {
  const failure = ({ code, message }: { code?: string; message?: string }) => `${code}: ${message}`;
  return await storeAt(url).then(() => "it was opened", failure);
}

async function contents(server: RedisServer): Promise<readonly unknown[]> {
  const record = await hashAt(server, "callnumber:{main}:record");
  // Each of the coordinator's connections begins with it: how many came as far as to send a command.
  const stats = String(await command(server, "INFO", "commandstats"));
  return [await command(server, "DBSIZE"), record, Number(/^cmdstat_hello:calls=(\d+)/m.exec(stats)?.[1] ?? 0)];
}

/** Settings of a URL: the authority, and a certificate with its key as the coordinator's own. */
function withOwn(pair: CertificateAndKey, key?: (key: string) => string): string {
  const own = writeTlsFiles(folder, pair, "coordinator");
  return `ca=${ca}&certificate=${own.certificate}&key=${key?.(own.key) ?? own.key}`;
}

describe("a store", () => {
  test.each<[what: string, options: TlsRedisOptions, query: () => string]>([
    ["with a certificate of the authority in its URL", {}, () => `ca=${ca}`],
    ["that accepts the coordinator's certificate", { requiresCertificates: true }, () => withOwn(authority.issue())],
  ])("a store leases from a server %s", async (_, options, query) => {
    const { lease } = await newStoreAt((await tlsRedis(options)).urlWith(query()));
    expect((await lease()).firstRun).toBe(1);
    expect((await lease()).firstRun).toBe(2);
  });

  const trusting = ({ urlWith }: TlsRedis) => urlWith(`ca=${ca}`);
  const showing = (pair: () => CertificateAndKey, key?: (key: string) => string) => (redis: TlsRedis) =>
    redis.urlWith(withOwn(pair(), key));
  const own = () => authority.issue();
  const elsewhere = authority.issue({ names: ["elsewhere.example"] });
  const ofTomorrow = authority.issue({ fromMs: Date.now() + 86_400_000 });
  const requiring = { requiresCertificates: true };

  test.each<[what: string, reason: RegExp, url: (redis: TlsRedis) => string, options?: TlsRedisOptions]>([
    ["a server's certificate of another authority", UNKNOWN, trusting, { pair: others.issue() }],
    ["an authority that Node does not know", UNKNOWN, ({ urlWith }) => urlWith("prefix=callnumber:")],
    ["a server's expired certificate", /its certificate has expired/, trusting, { pair: expired() }],
    ["a server's certificate of tomorrow", /its certificate is not valid yet/, trusting, { pair: ofTomorrow }],
    ["a server's certificate for another host", /for another host name/, trusting, { pair: elsewhere }],
    ["no certificate where one is required", /it asks for a certificate/, trusting, requiring],
    [
      "an own certificate of another authority",
      /it does not know the authority of the coordinator's certificate/,
      showing(() => others.issue()),
      requiring,
    ],
    ["an own expired certificate", /the coordinator's certificate has expired/, showing(expired), requiring],
    ["a missing key", /key can't be read: ENOENT/, showing(own, () => "/nonexistent/key")],
    ["a key that others may read", /mode is 0644; .*chmod 600/, showing(own, (key) => replaceFile(key, "x", 0o644))],
    ["a key of another certificate", /key values mismatch/, showing(own, () => writeTlsFiles(folder, own(), "x").key)],
    [
      "a CA file without a certificate",
      /holds no certificate in PEM/,
      ({ urlWith }) => urlWith(`ca=${writeTlsFiles(folder, own(), "x").key}`),
    ],
    [
      "a port without TLS",
      /does not speak TLS there/,
      ({ server }) => `${server.storeUrl.replace("redis:", "rediss:")}?ca=${ca}`,
    ],
    [
      "a URL without TLS for a port with TLS",
      /(broke|closed|ECONNRESET)/,
      ({ urlWith }) => urlWith("").replace("rediss:", "redis:").replace("?", ""),
    ],
  ])("a store is not opened with %s, and nothing is sent", async (_, reason, url, options) => {
    const redis = await tlsRedis(options);
    await newStoreAt(redis.server.url);
    const before = await contents(redis.server);
    const failure = await failureToOpen(url(redis));
    expect(failure).toMatch(/^store_unavailable: /);
    expect(failure).toMatch(reason);
    expect(failure).not.toContain("PRIVATE");
    expect(await contents(redis.server)).toEqual(before);
  });

  test("a store verifies the server also where the environment disables it in Node", async () => {
    const redis = await tlsRedis({ pair: others.issue() });
    const env = { NODE_TLS_REJECT_UNAUTHORIZED: "0" };
    const { code, stderr } = await callnumberProcess(["init", "--store", redis.urlWith(`ca=${ca}`)], { env });
    expect(code).toBe(1);
    expect(stderr).toContain("its certificate is of an authority that is not known here");
    expect(await contents(redis.server)).toEqual([0, new Map(), 0]);
  });

  test("a store leases no more when the server's certificate is replaced by one of another authority", async () => {
    const { server, urlWith } = await tlsRedis();
    const { lease } = await newStoreAt(urlWith(`ca=${ca}`));
    expect((await lease()).firstRun).toBe(1);
    await server.stop();
    writeTlsFiles(folder, others.issue(), "redis");
    await server.start();
    const failure = () => lease().then(String, ({ message }: Error) => message);
    await expect.poll(failure).toMatch(/of an authority that is not known here/);
    expect(await contents(server)).toEqual([0, new Map(), 0]);
  });
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

describe("a Sentinel group with TLS alone", () => {
  /** `ofOthers`: whose certificates are of an authority that the store does not trust. */
  async function group(ofOthers?: "nodes" | "sentinels"): Promise<SentinelRedis> {
    const launch: LaunchNode = (options, index) => {
      const kind = options.sentinel ? "sentinels" : "nodes";
      const tls = certified(`${kind}-${index}`, kind === ofOthers ? others : authority);
      return startRedisServer({ ...options, tls });
    };
    return await startSentinelRedis({ launch });
  }

  const plainUrlOf = ({ sentinelHosts, masterName }: SentinelRedis) => sentinelStoreUrlAt(sentinelHosts, masterName);
  const urlOf = (redis: SentinelRedis) => `${plainUrlOf(redis).replace("redis-", "rediss-")}?ca=${ca}`;

  test("a Sentinel group with TLS alone leases before and after a failover, and not without TLS", async () => {
    const redis = await group();
    expect(await failureToOpen(plainUrlOf(redis))).toMatch(/^store_unavailable: /);
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

  test.each(["sentinels", "nodes"] as const)(
    "a Sentinel group is rejected when the certificates of its %s are",
    async (which) => {
      expect(await failureToOpen(urlOf(await group(which)))).toMatch(UNKNOWN);
    },
  );
});

test("a Cluster with TLS leases at the masters whose certificates are trusted, and not at one that they name", async () => {
  // A node names the others' ports for TLS to a client with TLS, and those without to a test.
  const launch: LaunchNode = (options, index) => {
    const lines = certified(`node-${index}`, index === 1 ? others : authority);
    const config = { ...options.config, ...lines, "tls-cluster": "yes", "tls-replication": "yes" };
    return startRedisServer({ ...options, config, morePorts: [...(options.morePorts ?? []), "tls-port"] });
  };
  const urlOf = (node: RedisServer) =>
    `${clusterStoreUrlAt(`127.0.0.1:${tlsPortOf(node)}`).replace("redis-", "rediss-")}?ca=${ca}`;
  const redis = await startClusterRedis({ launch });
  const [trusted, untrusted] = redis.nodes as [RedisServer, RedisServer];
  const { coordinator } = await redisCoordinatorAt(urlOf(trusted));
  const masters = new Map<RedisServer, string>();
  for (const name of NAMES) masters.set(await redis.masterOf(`{${name}}`), name);
  expect(masters.size).toBe(3);
  for (const [master, name] of masters) {
    const made = coordinator.initNamespace(name, { nodeCount: 2, rate: RATE });
    if (master !== untrusted) await made;
    else await expect(made).rejects.toThrow(/its certificate is of an authority that is not known here/);
  }
  const names = [...masters].filter(([master]) => master !== untrusted).map(([, name]) => name);
  const crowd = startCrowd([coordinator], names);
  await crowd.untilLeased();
  await crowd.stop();
  expectNoRunTwice(crowd.leases);
  expect(await failureToOpen(urlOf(untrusted))).toMatch(UNKNOWN);
});
