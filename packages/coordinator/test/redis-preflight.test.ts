/** The findings about a Redis server, each on a real server that gives cause for it, and what a coordinator makes of them. */
import { mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { command, info, until } from "../../../test/redis/redis-command.js";
import { asOperator, sentinelStoreUrlAt, watching } from "../../../test/redis/shipped-users.js";
import { startRedisServer } from "../../../test/redis/test-redis.js";
import { sentinelFindings, serverFindings } from "../src/stores/redis/findings.js";
import { requestAfter } from "./leasing-crowd.js";
import { needsOwnServer, redisCoordinatorAt, storeAt } from "./redis-for-test.js";

/** A server without findings, also for an operator. */
const SOUND = {
  appendonly: "yes",
  appendfsync: "always",
  "no-appendfsync-on-rewrite": "no",
  "aof-load-truncated": "no",
  "maxmemory-policy": "noeviction",
};

/** The finding as `code override: remedy`, and what it says. */
type Row = [what: string, by: "coordinator" | "operator", config: Config, finding?: string, text?: RegExp];
type Config = Record<string, string | string[]>;

beforeEach(needsOwnServer);

describe("the findings about a server", () => {
  const limited = (policy: string) => ({ maxmemory: "100mb", "maxmemory-policy": policy });
  const user = (...lines: string[]) => ({ user: lines });
  const COORDINATOR = "callnumber on >pw ~* +@all";
  const EVICTION = "eviction: maxmemory-policy noeviction";
  const REWRITE = "no-appendfsync-on-rewrite";

  test.each<Row>([
    ["a sound server", "coordinator", {}],
    ["a sound server", "operator", {}],
    ...["allkeys-lru", "allkeys-lfu", "allkeys-random"].map((policy): Row => {
      return [policy, "coordinator", limited(policy), `store_eviction_enabled ${EVICTION}`, new RegExp(policy)];
    }),
    ...["volatile-lru", "volatile-ttl", "noeviction"].map((policy): Row => [policy, "operator", limited(policy)]),
    [
      "eviction without a limit",
      "coordinator",
      { "maxmemory-policy": "allkeys-lru" },
      "warning eviction-when-limited: maxmemory-policy noeviction",
    ],
    ["no append-only file", "coordinator", { appendonly: "no" }, "warning no-persistence: appendonly yes"],
    [
      "nothing on disk, whatever an append-only file would be",
      "operator",
      { appendonly: "no", save: '""', appendfsync: "no" },
      "warning no-persistence: appendonly yes",
      /keeps nothing/,
    ],
    ["no syncs", "operator", { appendfsync: "no" }, "warning appendfsync-no: appendfsync always"],
    ["no syncs during a rewrite", "operator", { [REWRITE]: "yes" }, `warning ${REWRITE}: ${REWRITE} no`],
    [
      "a start from a truncated file",
      "operator",
      { "aof-load-truncated": "yes" },
      "warning aof-load-truncated: aof-load-truncated no",
    ],
    [
      "a default user without a password",
      "operator",
      user("default on nopass ~* &* +@all", COORDINATOR),
      "warning default-user: make the users (deploy/redis/make-acl.sh), put one into the store's URL, and only then: user default off",
      /, without a password$/,
    ],
    [
      "a default user with a password",
      "operator",
      user("default on >secret ~* &* +@all", COORDINATOR),
      "warning default-user: make the users (deploy/redis/make-acl.sh), put one into the store's URL, and only then: user default off",
      /as the default user$/,
    ],
    [
      "a user without the right to INFO",
      "coordinator",
      user("default off", `${COORDINATOR} -info`),
      "store_epoch_unreadable undefined: ACL SETUSER <the coordinator's user> +info",
    ],
    [
      "an operator without the right to CONFIG and ACL",
      "operator",
      { ...user("default off", `${COORDINATOR} -config -acl`), "aof-load-truncated": "yes" },
      "warning unseen-configuration: --store with the operator's user",
      /CONFIG GET and ACL LIST/,
    ],
  ])("the findings about a server are right for %s (as %s, %j)", async (_, by, config, finding, text = /^/) => {
    const open = config["user"] && { openBecause: "it has the users that are tested here" };
    const server = await startRedisServer({ ...open, config: { ...SOUND, ...config } });
    const shipped = by === "operator" ? asOperator(server.url) : server.storeUrl;
    const store = await storeAt(open ? `redis://callnumber:pw@${server.host}:${server.port}` : shipped);
    const found = await store.preflight({ asOperator: by === "operator" });
    const texts = found.map(({ code = "warning", override, remedy }) => `${code} ${override}: ${remedy}`);
    expect(texts).toEqual(finding === undefined ? [] : [finding]);
    for (const { what, namespaces } of found)
      expect([what, namespaces]).toEqual([expect.stringMatching(text), undefined]);
  });

  test("the findings about a server include an append-only file that can't be written", async () => {
    const server = await startRedisServer({ config: SOUND });
    const store = await storeAt(server.url);
    // A directory stands where the rewritten file is to be put: up to Redis 6.2, and since 7.
    await rename(join(server.directory, "appendonly.aof"), join(server.directory, "aside")).catch(() => {});
    for (const file of ["appendonly.aof", "appendonlydir/appendonly.aof.2.base.rdb"])
      await mkdir(join(server.directory, file, "in-the-way"), { recursive: true });
    await command(server, "BGREWRITEAOF");
    const persistence = () => info(server);
    await until("the rewrite fails", persistence, ({ aof_last_bgrewrite_status: status }) => status === "err");
    expect(await store.preflight()).toMatchObject([{ code: undefined, override: "failing-writes" }]);
  });
});

describe("the findings from a changed INFO", () => {
  const use = {
    host: "127.0.0.1",
    server: "127.0.0.1:6379",
    tls: false,
    namespaces: [{ namespace: "main", nodeCount: 1 }],
    concerns: undefined,
  };
  let own = "";

  beforeEach(async () => {
    own ||= String(await command(await startRedisServer({ config: SOUND }), "INFO"));
  });

  const found = (text: string, changed = {}) =>
    serverFindings({ info: text, asOperator: undefined }, { ...use, ...changed });
  const namesOf = (text: string, changed = {}) => found(text, changed).map(({ code, override }) => code ?? override);
  const withLine = (name: string, value: string) => own.replace(new RegExp(`^${name}:.*$`, "m"), `${name}:${value}`);

  test.each([
    ["5.0.14", ["store_version_unsupported"]],
    ["6.0.16", ["store_version_unsupported"]],
    ["6.1.99", ["store_version_unsupported"]],
    ["6.2.0", []],
    ["6.10.0", []],
    ["7.2.4", []],
    ["10.0.0", []],
  ])("the findings for version %s are %j", (version, names) => {
    // Whatever the tests run on: a Valkey also reports a version of its own.
    expect(namesOf(withLine("redis_version", version).replace(/^valkey_version:.*\r\n/m, ""))).toEqual(names);
  });

  test.each(["7.2.4", "0.0.0"])("the findings accept Valkey by its own version, with Redis version %s", (version) => {
    const valkey = "server_name:valkey\r\nvalkey_version:8.0.1\r\n$&";
    expect(namesOf(withLine("redis_version", version).replace(/^redis_git_sha1/m, valkey))).toEqual([]);
  });

  test.each(["run_id", "master_replid", "sync_full", "sync_partial_ok", "role", "connected_slaves"])(
    "the findings reject a server without %s",
    (name) => {
      expect(namesOf(own.replace(new RegExp(`^${name}:.*\\r\\n`, "m"), ""))).toEqual(["store_epoch_unreadable"]);
    },
  );

  test("the findings count replicas against the nodes of each namespace", () => {
    const namespaces = [1, 2, 3].map((nodeCount) => ({ namespace: `n${nodeCount}`, nodeCount }));
    const [finding] = found(withLine("connected_slaves", "2"), { namespaces });
    expect(finding).toMatchObject({ code: "unexpected_replicas", namespaces: ["n1", "n2"] });
    expect(finding?.remedy).toContain("--nodes 3");
    expect(found(withLine("connected_slaves", "1"), { namespaces })).toMatchObject([
      { code: "unexpected_replicas", namespaces: ["n1"] },
      {
        code: undefined,
        override: "replica-missing",
        namespaces: ["n3"],
        remedy: expect.stringContaining("count fewer (recover --nodes) only if they are wiped"),
      },
    ]);
  });

  test.each([
    ["10.1.2.3", false, ["no-tls"]],
    ["redis", false, ["no-tls"]],
    ["127.evil.example", false, ["no-tls"]],
    ["10.1.2.3", true, []],
    ["127.0.0.7", false, []],
    ["localhost", false, []],
    ["::1", false, []],
  ])("the findings for host %s with TLS %s are %j", (host, tls, names) => {
    expect(namesOf(own, { host, tls })).toEqual(names);
  });
});

describe("the findings about Sentinels", () => {
  const at = (...hosts: string[]) => hosts.map((host) => ({ host, port: 26379 }));

  test.each([
    [{ sentinels: at("a", "b"), tls: false }, ["sentinel-no-tls", "sentinel-no-password"]],
    // It proves us to them, and not them to us.
    [{ sentinels: at("a", "b"), tls: false, sentinelPassword: "pw" }, ["sentinel-no-tls"]],
    [{ sentinels: at("a", "b"), tls: true }, ["sentinel-no-password"]],
    [{ sentinels: at("a", "b"), tls: true, sentinelPassword: "pw" }, []],
    [{ sentinels: at("a", "b"), tls: true, tlsFiles: { certificate: "c.pem", key: "k.pem" } }, []],
    [{ sentinels: at("127.0.0.1", "10.0.0.1"), tls: true }, ["sentinel-no-password"]],
    [{ sentinels: at("127.0.0.1", "localhost", "::1"), tls: false }, []],
  ])("the findings about the Sentinels of %j are warnings: %j", (access, names) => {
    const findings = [...sentinelFindings(access)];
    expect(findings.map(({ override }) => override)).toEqual(names);
    expect(findings.every(({ code }) => code === undefined)).toBe(true);
  });

  test("the findings include those about a Sentinel by another name of this machine", async () => {
    const master = await startRedisServer({ config: { appendonly: "yes" } });
    const watched = [`monitor archive ${master.host} ${master.port} 1`, ...watching("archive")];
    const { host, port } = await startRedisServer({ sentinel: true, config: { sentinel: watched } });
    const namesFor = async (sentinel: string) => {
      const store = await storeAt(sentinelStoreUrlAt(`${sentinel}:${port}`, "archive"));
      return (await store.preflight()).map(({ override }) => override);
    };
    expect(await namesFor(host)).toEqual([]);
    expect(await namesFor("0.0.0.0")).toEqual(["sentinel-no-tls", "sentinel-no-password"]);
  });
});

test("a coordinator leases nothing from a server that evicts, unless an operator accepts that, until it is fixed", async () => {
  const { url } = await startRedisServer({
    config: { ...SOUND, maxmemory: "100mb", "maxmemory-policy": "allkeys-lru" },
  });
  const request = () => ({ ...requestAfter(undefined), holder: { name: "importer", host: "h", pid: 1, labels: {} } });
  const accepting = await redisCoordinatorAt(url, { overrides: ["eviction"] });
  for (const namespace of ["main", "lists"]) await accepting.coordinator.initNamespace(namespace);
  expect((await accepting.coordinator.lease("main", request())).runCount).toBe(1);

  const overrides = ["old-server", "no-persistence"];
  const { coordinator, events } = await redisCoordinatorAt(url, { overrides, preflightEveryMs: 50 });
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
  for (const event of ["preflight_finding", "preflight_finding_resolved"])
    expect(events.filter((one) => one.event === event)).toHaveLength(1);
});
