/** What is said of a Redis server before it is trusted: each finding on a real server that gives cause for it. */
import { mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { command, info, until } from "../../../test/redis/redis-command.js";
import { asOperator, sentinelStoreUrlAt, watching } from "../../../test/redis/shipped-users.js";
import { ownServerUnavailable, type RedisServer, startRedisServer } from "../../../test/redis/test-redis.js";
import { Coordinator } from "../src/coordinator.js";
import { sentinelFindings, serverFindings } from "../src/stores/redis/findings.js";
import type { Finding } from "../src/stores/store.js";
import { requestAfter, SHORT_BOUNDS } from "./leasing-crowd.js";
import { redisCoordinatorAt, redisStoreAt } from "./redis-coordinator.js";

/** One about which nothing is to be said, also to an operator. */
const SOUND = {
  appendonly: "yes",
  appendfsync: "always",
  "no-appendfsync-on-rewrite": "no",
  "aof-load-truncated": "no",
  "maxmemory-policy": "noeviction",
};

beforeEach((context) => {
  const reason = ownServerUnavailable();
  context.skip(reason !== undefined, reason);
});

type Lines = Record<string, string | string[]>;

/** With the users that we ship; `own`: with these instead, of whom the store logs in as `callnumber`, with the password `pw`. */
async function findingsOn(
  config: Lines,
  { isOperator, own }: { isOperator: boolean; own?: readonly string[] },
): Promise<readonly Finding[]> {
  const users = own && { config: { user: [...own] }, openBecause: "it has the users that are judged here" };
  const server = await startRedisServer({ ...users, config: { ...SOUND, ...config, ...users?.config } });
  const shipped = isOperator ? asOperator(server.url) : server.storeUrl;
  const store = await redisStoreAt(own ? `redis://callnumber:pw@${server.host}:${server.port}` : shipped);
  return await store.preflight({ asOperator: isOperator });
}

describe("a look at a server", () => {
  test("finds nothing where nothing is wrong, whoever looks", async () => {
    expect(await findingsOn({}, { isOperator: false })).toEqual([]);
    expect(await findingsOn({}, { isOperator: true })).toEqual([]);
  });

  const evicting = ["allkeys-lru", "allkeys-lfu", "allkeys-random"];
  test.each(evicting)("refuses a memory limit with %s, which can throw the counter away", async (policy) => {
    const found = await findingsOn({ maxmemory: "100mb", "maxmemory-policy": policy }, { isOperator: false });
    expect(found).toMatchObject([
      {
        code: "store_eviction_enabled",
        remedy: "maxmemory-policy noeviction",
        override: "eviction",
        namespaces: undefined,
      },
    ]);
    expect(found[0]?.what).toContain(policy);
  });

  test.each(["volatile-lru", "volatile-ttl", "noeviction"])(
    "has nothing against %s, which finds no key of ours",
    async (policy) => {
      expect(await findingsOn({ maxmemory: "100mb", "maxmemory-policy": policy }, { isOperator: true })).toEqual([]);
    },
  );

  const warnings: [string, Lines, Partial<Finding>][] = [
    [
      "evicts as soon as there is a limit",
      { "maxmemory-policy": "allkeys-lru" },
      { override: "eviction-when-limited", remedy: "maxmemory-policy noeviction" },
    ],
    ["keeps no append-only file", { appendonly: "no" }, { override: "no-persistence", remedy: "appendonly yes" }],
  ];
  test.each(warnings)("warns of one that %s", async (_, config, finding) => {
    expect(await findingsOn(config, { isOperator: false })).toMatchObject([{ code: undefined, ...finding }]);
  });

  const operatorsWarnings: [string, Lines, Partial<Finding>][] = [
    [
      "keeps nothing on disk at all",
      { appendonly: "no", save: '""' },
      { override: "no-persistence", what: expect.stringContaining("keeps nothing") },
    ],
    ["syncs by chance", { appendfsync: "no" }, { override: "appendfsync-no", remedy: "appendfsync always" }],
    [
      "does not sync while it rewrites",
      { "no-appendfsync-on-rewrite": "yes" },
      { override: "no-appendfsync-on-rewrite", remedy: "no-appendfsync-on-rewrite no" },
    ],
    [
      "starts with a file that lost its end",
      { "aof-load-truncated": "yes" },
      { override: "aof-load-truncated", remedy: "aof-load-truncated no" },
    ],
  ];
  test.each(operatorsWarnings)("warns an operator of one that %s", async (_, config, finding) => {
    expect(await findingsOn(config, { isOperator: true })).toMatchObject([{ code: undefined, ...finding }]);
  });

  const defaultUsers: [string, string, Partial<Finding>][] = [
    [
      "lets everybody in",
      "default on nopass ~* &* +@all",
      { remedy: "user default off", what: expect.stringContaining("without a password") },
    ],
    [
      "lets in who has the one password",
      "default on >secret ~* &* +@all",
      { what: expect.not.stringContaining("without a password") },
    ],
  ];
  test.each(defaultUsers)("warns an operator of one that %s", async (_, defaultUser, finding) => {
    const own = [defaultUser, "callnumber on >pw ~* +@all"];
    expect(await findingsOn({}, { isOperator: true, own })).toMatchObject([
      { code: undefined, override: "default-user", ...finding },
    ]);
  });

  test("warns of one that fails to write its append-only file", async () => {
    const server = await startRedisServer({ config: SOUND });
    const store = await redisStoreAt(server.url);
    // A folder stands where the rewritten file is to be put: up to Redis 6.2, and since 7.
    await rename(join(server.directory, "appendonly.aof"), join(server.directory, "aside")).catch(() => {});
    await mkdir(join(server.directory, "appendonly.aof", "in-the-way"), { recursive: true });
    await mkdir(join(server.directory, "appendonlydir", "appendonly.aof.2.base.rdb", "in-the-way"), {
      recursive: true,
    });
    await command(server, "BGREWRITEAOF");
    const persistence = () => info(server);
    await until("the rewrite fails", persistence, ({ aof_last_bgrewrite_status: status }) => status === "err");
    expect(await store.preflight()).toMatchObject([{ code: undefined, override: "failing-writes" }]);
  });

  test("refuses one that does not tell who it is, and says which right is missing", async () => {
    const own = ["default off", "callnumber on >pw ~* +@all -info"];
    expect(await findingsOn({}, { isOperator: false, own })).toMatchObject([
      { code: "store_epoch_unreadable", remedy: expect.stringContaining("+info"), override: undefined },
    ]);
  });

  test("tells an operator what it may not see, instead of holding it to be sound", async () => {
    const own = ["default off", "callnumber on >pw ~* +@all -config -acl"];
    const [finding, ...others] = await findingsOn({ "aof-load-truncated": "yes" }, { isOperator: true, own });
    expect(finding).toMatchObject({ code: undefined, override: "unseen-configuration" });
    expect(finding?.what).toMatch(/CONFIG GET and ACL LIST/);
    expect(others).toEqual([]);
  });
});

describe("the judgement over a server's own words", () => {
  const use = {
    host: "127.0.0.1",
    server: "127.0.0.1:6379",
    tls: false,
    namespaces: [{ namespace: "main", nodeCount: 1 }],
    concerns: undefined,
  };
  let own: string;

  beforeEach(async () => {
    const server = await startRedisServer({ config: SOUND });
    own = String(await command(server, "INFO"));
    expect(judged(own)).toEqual([]);
  });

  const judged = (text: string, changed = {}) =>
    serverFindings({ info: text, asOperator: undefined }, { ...use, ...changed }).map(
      ({ code, override }) => code ?? override,
    );
  const withLine = (name: string, value: string) => own.replace(new RegExp(`^${name}:.*$`, "m"), `${name}:${value}`);

  test.each([
    ["5.0.14", ["store_version_unsupported"]],
    ["6.0.16", ["store_version_unsupported"]],
    ["6.1.99", ["store_version_unsupported"]],
    ["6.2.0", []],
    ["6.10.0", []],
    ["7.2.4", []],
    ["10.0.0", []],
  ])("says of version %s: %j", (version, codes) => {
    // Whatever the tests run on: a Valkey tells a version of its own besides.
    const redis = withLine("redis_version", version).replace(/^valkey_version:.*\r\n/m, "");
    expect(judged(redis)).toEqual(codes);
  });

  test("takes Valkey by its own version, whatever Redis version it names", () => {
    const valkey = withLine("redis_version", "7.2.4").replace(
      /^redis_git_sha1/m,
      "server_name:valkey\r\nvalkey_version:8.0.1\r\n$&",
    );
    expect(judged(valkey)).toEqual([]);
    expect(judged(valkey.replace("redis_version:7.2.4", "redis_version:0.0.0"))).toEqual([]);
  });

  test.each(["run_id", "master_replid", "sync_full", "sync_partial_ok", "role", "connected_slaves"])(
    "refuses when %s is missing",
    (name) => {
      expect(judged(own.replace(new RegExp(`^${name}:.*\\r\\n`, "m"), ""))).toEqual(["store_epoch_unreadable"]);
    },
  );

  test("counts replicas against the nodes of each namespace", () => {
    const text = withLine("connected_slaves", "2");
    const namespaces = [1, 2, 3].map((nodeCount) => ({ namespace: `n${nodeCount}`, nodeCount }));
    const [finding] = serverFindings({ info: text, asOperator: undefined }, { ...use, namespaces });
    expect(finding).toMatchObject({ code: "unexpected_replicas", namespaces: ["n1", "n2"] });
    expect(finding?.remedy).toContain("--nodes 3");
  });

  test.each([
    ["10.1.2.3", false, ["no-tls"]],
    ["redis", false, ["no-tls"]],
    ["127.evil.example", false, ["no-tls"]],
    ["10.1.2.3", true, []],
    ["127.0.0.7", false, []],
    ["localhost", false, []],
    ["::1", false, []],
  ])("says of %s, with TLS %s: %j", (host, tls, names) => {
    expect(judged(own, { host, tls })).toEqual(names);
  });
});

const at = (...hosts: string[]) => hosts.map((host) => ({ host, port: 26379 }));
const FILES = { certificate: "c.pem", key: "k.pem" };

describe("the path over Sentinels", () => {
  test.each([
    [{ sentinels: at("a", "b"), tls: false }, ["sentinel-no-tls", "sentinel-no-password"]],
    // It proves us to them, and not them to us.
    [{ sentinels: at("a", "b"), tls: false, sentinelPassword: "pw" }, ["sentinel-no-tls"]],
    [{ sentinels: at("a", "b"), tls: true }, ["sentinel-no-password"]],
    [{ sentinels: at("a", "b"), tls: true, sentinelPassword: "pw" }, []],
    [{ sentinels: at("a", "b"), tls: true, tlsFiles: FILES }, []],
    [{ sentinels: at("127.0.0.1", "10.0.0.1"), tls: true }, ["sentinel-no-password"]],
    [{ sentinels: at("127.0.0.1", "localhost", "::1"), tls: false }, []],
  ])("%j has %j", (way, names) => {
    const findings = sentinelFindings(way);
    expect(findings.map(({ override }) => override)).toEqual(names);
    expect(findings.map(({ code }) => code)).toEqual(names.map(() => undefined));
  });

  test("is looked at with the servers: on a Sentinel by another name of this machine", async () => {
    const master = await startRedisServer({ config: { appendonly: "yes" } });
    const watched = [`monitor archive ${master.host} ${master.port} 1`, ...watching("archive")];
    const { host, port } = await startRedisServer({ sentinel: true, config: { sentinel: watched } });
    const namesFor = async (sentinel: string) => {
      const store = await redisStoreAt(sentinelStoreUrlAt(`${sentinel}:${port}`, "archive"));
      return (await store.preflight()).map(({ override }) => override);
    };
    expect(await namesFor(host)).toEqual([]);
    expect(await namesFor("0.0.0.0")).toEqual(["sentinel-no-tls", "sentinel-no-password"]);
  });
});

describe("a coordinator", () => {
  const EVICTING = { ...SOUND, maxmemory: "100mb", "maxmemory-policy": "allkeys-lru" };
  const request = () => ({ ...requestAfter(undefined), holder: { name: "importer", host: "h", pid: 1, labels: {} } });

  async function withNamespaces(server: RedisServer): Promise<string> {
    const { url } = server;
    const maker = new Coordinator({ store: await redisStoreAt(url), name: "init", bounds: SHORT_BOUNDS });
    for (const namespace of ["main", "lists"]) await maker.initNamespace(namespace);
    return url;
  }

  test("leases nothing in any namespace from a server that evicts, says so from the start, and goes on when it is mended", async () => {
    const server = await startRedisServer({ config: EVICTING });
    const url = await withNamespaces(server);
    const { coordinator, events } = await redisCoordinatorAt(url, { preflightEveryMs: 50 });
    for (const namespace of ["main", "lists"]) {
      await expect(coordinator.lease(namespace, request())).rejects.toMatchObject({
        code: "store_eviction_enabled",
        message: expect.stringMatching(/maxmemory-policy noeviction.*--ignore-findings eviction/),
      });
      const { guard } = await coordinator.status(namespace);
      expect(guard).toMatchObject({ state: "stopped", code: "store_eviction_enabled" });
      expect(guard.explanation).toContain("allkeys-lru");
    }
    await expect(coordinator.assertReady()).rejects.toMatchObject({ code: "store_eviction_enabled" });
    await command({ url }, "CONFIG", "SET", "maxmemory-policy", "noeviction");
    await until(
      "it leases",
      () => coordinator.lease("main", request()),
      () => true,
    );
    expect((await coordinator.status("main")).guard).toMatchObject({ state: "active", code: null });
    expect((await coordinator.assertReady()).namespaces).toEqual(["lists", "main"]);
    expect(events.filter(({ event }) => event === "preflight_finding")).toHaveLength(1);
    expect(events.filter(({ event }) => event === "preflight_finding_resolved")).toHaveLength(1);
  });

  test("leases although it was found, when an operator has accepted it by its name, and only then", async () => {
    const server = await startRedisServer({ config: EVICTING });
    const url = await withNamespaces(server);
    const accepting = await redisCoordinatorAt(url, { overrides: ["eviction"] });
    expect((await accepting.coordinator.lease("main", request())).runCount).toBe(1);
    expect(accepting.events.filter(({ event }) => event === "preflight_finding")).toEqual([]);
    const other = await redisCoordinatorAt(url, { overrides: ["old-server", "no-persistence"] });
    await expect(other.coordinator.lease("main", request())).rejects.toMatchObject({ code: "store_eviction_enabled" });
  });
});
