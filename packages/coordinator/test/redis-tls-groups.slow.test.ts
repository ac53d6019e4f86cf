/**
 * TLS to a Sentinel group and to a Cluster, with real certificates: every connection of the store is encrypted and every server believed
 * or refused by itself, those also that another server named.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { startClusterRedis } from "../../../test/redis/cluster-redis.js";
import type { LaunchNode } from "../../../test/redis/replicated-redis.js";
import { type SentinelRedis, startSentinelRedis } from "../../../test/redis/sentinel-redis.js";
import { clusterStoreUrlAt, sentinelStoreUrlAt } from "../../../test/redis/shipped-users.js";
import { ownServerUnavailable, type RedisServer, startRedisServer } from "../../../test/redis/test-redis.js";
import { newAuthority } from "../../../test/tls/certificates.js";
import { replaceFile, writeTlsFiles } from "../../../test/tls/files.js";
import { expectNoRunTwice, RATE, startCrowd } from "./leasing-crowd.js";
import { redisCoordinatorAt, redisStoreAt } from "./redis-coordinator.js";

const authority = newAuthority();
const others = newAuthority("others");
/** Of ten names each of three masters has some. */
const NAMES = Array.from({ length: 10 }, (_, index) => `list-${index}`);
const UNKNOWN = /^store_unavailable: .*nobody known here has signed its certificate/;

let folder: string;
/** What the store is told to believe. */
let ca: string;
/** What the servers believe of each other: all that these tests issue. */
let bothCas: string;

beforeEach((context) => {
  const reason = ownServerUnavailable();
  context.skip(reason !== undefined, reason);
  folder = mkdtempSync(join(tmpdir(), "callnumber-tls-groups-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  ca = replaceFile(join(folder, "ca.crt"), authority.certificate);
  bothCas = replaceFile(join(folder, "both.crt"), authority.certificate + others.certificate);
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
    await expect(told(plainUrlOf(redis))).resolves.toMatch(/^store_unavailable: /);
  });

  test.each(["sentinels", "nodes"] as const)("is refused when its %s are not believed", async (which) => {
    const redis = await group(which);
    expect(await told(urlOf(redis))).toMatch(UNKNOWN);
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
    expect(await told(urlOf(stranger))).toMatch(UNKNOWN);
  });
});

/** Why a store can't be opened. */
async function told(url: string): Promise<string> {
  return await redisStoreAt(url).then(
    () => "it was let in",
    (error: { code?: string; message?: string }) => `${error.code}: ${error.message}`,
  );
}

function tlsPortOf({ directory }: RedisServer): string {
  const [, port = ""] = /^tls-port (\d+)$/m.exec(readFileSync(join(directory, "redis.conf"), "utf8")) ?? [];
  return port;
}
