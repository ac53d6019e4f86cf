/** What we ship for Redis, in a real Redis: the users of make-acl.sh and the settings of redis.conf. */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { callnumber, folderForTest, REPOSITORY, serve } from "../processes/command.js";
import { command } from "../redis/redis-command.js";
import { ownServerUnavailable, type RedisServer, startRedisServer } from "../redis/test-redis.js";

const DEPLOY_FOLDER = join(REPOSITORY, "deploy", "redis");
const USERS_BY_PASSWORD = {
  CALLNUMBER_REDIS_PASSWORD: "callnumber",
  CALLNUMBER_REDIS_OPERATOR_PASSWORD: "operator",
  CALLNUMBER_REDIS_REPLICA_PASSWORD: "replica",
  CALLNUMBER_REDIS_SENTINEL_PASSWORD: "sentinel",
  CALLNUMBER_REDIS_CLUSTER_PASSWORD: "cluster",
};
type PasswordName = keyof typeof USERS_BY_PASSWORD;
const NAMES = Object.keys(USERS_BY_PASSWORD) as PasswordName[];
/** The other users are there only where a group needs them. */
const NEEDED: readonly PasswordName[] = ["CALLNUMBER_REDIS_PASSWORD", "CALLNUMBER_REDIS_OPERATOR_PASSWORD"];
const PASSWORDS = Object.fromEntries(NAMES.map((name) => [name, randomBytes(32).toString("hex")])) as Record<
  PasswordName,
  string
>;

/** Commands that each user is denied. */
const DENIED: Readonly<Record<string, readonly string[]>> = {
  callnumber: [
    "flushall",
    "flushdb",
    "swapdb 0 1",
    "config get dir",
    "config set appendonly no",
    "keys *",
    "scan 0",
    "del callnumber:{acl}:record",
    "rename callnumber:{acl}:record callnumber:{acl}:other",
    "expire callnumber:{acl}:record 1",
    "acl setuser someone on nopass",
    "shutdown nosave",
    "hget other:{acl}:record f",
    "eval return(redis.call('hset',KEYS[1],'f','1')) 1 other",
    "eval return(redis.call('del',KEYS[1])) 1 callnumber:{acl}:record",
  ],
  operator: [
    "flushall",
    "config set appendonly no",
    "del callnumber:{acl}:record",
    "replicaof 127.0.0.1 1",
    "acl setuser someone on nopass",
    "client pause 1 all",
    "client kill type normal",
  ],
  replica: ["flushall", "hget callnumber:{acl}:record f", "replicaof 127.0.0.1 1"],
  sentinel: ["flushall", "hget callnumber:{acl}:record f", "config set appendonly no", "shutdown nosave"],
  cluster: [
    "flushall",
    "hget callnumber:{acl}:record f",
    "cluster reset hard",
    "cluster flushslots",
    "cluster setslot 1 stable",
    "replicaof 127.0.0.1 1",
    "config set appendonly no",
  ],
};
const DENIAL = /NOPERM|ACL failure in script|can't run this command|No permissions/i;

describe("a Redis with the users and the settings that we ship", () => {
  let server: RedisServer;

  beforeEach(async (context) => {
    const reason = ownServerUnavailable();
    context.skip(reason !== undefined, reason);
    const aclfile = join(await folderForTest(), "users.acl");
    await writeFile(aclfile, makeAcl(PASSWORDS).stdout);
    server = await startRedisServer({
      config: { include: JSON.stringify(join(DEPLOY_FOLDER, "redis.conf")), aclfile },
      openBecause: "its users are those of the file made here, and no test's",
    });
  });

  test("Redis rejects clients that do not log in, and the default user with any password", async () => {
    await expect(connected(server.url).ping()).rejects.toThrow(/NOAUTH/);
    for (const password of ["default", ...Object.values(PASSWORDS)]) {
      await expect(connected(urlOf(server, "default", password)).ping()).rejects.toThrow(/WRONGPASS/);
    }
  });

  test("the coordinator can do its work, from init to inspect", async () => {
    const store = urlOf(server, "callnumber", PASSWORDS.CALLNUMBER_REDIS_PASSWORD);
    expect(await callnumber(["init", "--store", store])).toMatchObject({ code: 0 });
    const { url, stop } = await serve(store);
    const next = await callnumber(["next", "--coordinator", url]);
    expect(next).toMatchObject({ code: 0, stdout: expect.stringMatching(/^[0-9A-Za-z]{8}\n$/) });
    const callNumber = next.stdout.trim();
    for (const command of [["inspect", callNumber], ["runs"], ["runs", "--from", "2000-01-01"], ["status"]]) {
      const { code, stdout, stderr } = await callnumber([...command, "--coordinator", url]);
      expect({ command, code, stderr }).toEqual({ command, code: 0, stderr: "" });
      expect(stdout).not.toBe("");
    }
    expect(await stop()).toBe(0);
  });

  test("the coordinator can run scripts on its own keys, by their text and by their digest", async () => {
    const redis = connected(urlOf(server, "callnumber", PASSWORDS.CALLNUMBER_REDIS_PASSWORD));
    const script = "redis.call('hset', KEYS[1], 'f', ARGV[1]) return redis.call('hget', KEYS[1], 'f')";
    expect(await redis.eval(script, 1, "callnumber:{acl}:record", "1")).toBe("1");
    const digest = await redis.script("LOAD", script);
    expect(await redis.evalsha(digest as string, 1, "callnumber:{acl}:record", "2")).toBe("2");
    expect(await redis.ping()).toBe("PONG");
    expect(await redis.time()).toHaveLength(2);
    expect(await redis.info("replication")).toContain("role:master");
    expect(await redis.wait(0, 1)).toBe(0);
  });

  test.each(Object.entries(DENIED))("the user %s is denied what it does not need", async (user, commands) => {
    const redis = connected(urlOf(server, user, passwordOf(user)));
    for (const words of commands) {
      const [command = "", ...parameters] = words.split(" ");
      await expect(redis.call(command, ...parameters), words).rejects.toThrow(DENIAL);
    }
  });

  test("the operator can read settings and take backups, and every lease is on disk before a response", async () => {
    const redis = connected(urlOf(server, "operator", PASSWORDS.CALLNUMBER_REDIS_OPERATOR_PASSWORD));
    for (const [name, value] of [
      ["appendonly", "yes"],
      ["appendfsync", "always"],
      ["no-appendfsync-on-rewrite", "no"],
      ["aof-load-truncated", "no"],
      ["maxmemory-policy", "noeviction"],
      ["save", ""],
    ] as const) {
      expect(await redis.config("GET", name)).toEqual([name, value]);
    }
    expect(await redis.keys("*")).toEqual([]);
    expect(await redis.call("CLIENT", "LIST")).toContain("user=operator");
    expect(await redis.bgrewriteaof()).toMatch(/append only file rewriting/i);
  });
});

test.each([
  ["unset", undefined, NEEDED],
  ["empty", "", NEEDED],
  ["short", "secret", NAMES],
  ["not fit for a URL", "a/password:with@characters?of#its-own-0123456789", NAMES],
])("make-acl.sh makes no file when a password is %s", (_, password, names) => {
  for (const name of names) {
    const { status, stdout, stderr } = makeAcl({ ...PASSWORDS, [name]: password });
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toContain(name);
    expect(stderr).toContain("openssl rand -hex 32");
  }
});

test("make-acl.sh makes the users that have a password, and no others", () => {
  for (const name of NAMES) {
    const given = new Set([...NEEDED, name]);
    const { stdout } = makeAcl(Object.fromEntries([...given].map((one) => [one, PASSWORDS[one]])));
    const users = [...given].map((one) => `user ${USERS_BY_PASSWORD[one]} on `);
    expect(stdout.match(/^user \w+ o(?:n|ff) /gm)).toEqual(["user default off ", ...users]);
  }
});

test("make-acl.sh writes digests, and no password", () => {
  const { stdout } = makeAcl(PASSWORDS);
  expect(stdout.split("\n").filter(Boolean)).toHaveLength(NAMES.length + 1);
  for (const password of Object.values(PASSWORDS)) expect(stdout).not.toContain(password);
});

test("what a script wrote in several steps is there after a kill", async (context) => {
  const reason = ownServerUnavailable();
  context.skip(reason !== undefined, reason);
  const config = { appendonly: "yes", appendfsync: "always" };
  const redis = await startRedisServer({ config });
  const [key, other] = ["callnumber:{main}:record", "callnumber:{main}:ledger"];
  const script = "redis.call('hset', KEYS[1], 'c', '7') redis.call('xadd', KEYS[2], '7-0', 'n', '1')";
  const store = { url: redis.storeUrl };
  await command(store, "EVAL", script, 2, key, other);
  await redis.kill("SIGKILL");
  await redis.start();
  expect(await command(store, "HGET", key, "c")).toBe("7");
  expect(await command(redis, "XLEN", other)).toBe(1);
});

function makeAcl(passwords: Record<string, string | undefined>) {
  return spawnSync("sh", [join(DEPLOY_FOLDER, "make-acl.sh")], {
    encoding: "utf8",
    env: { PATH: process.env.PATH, ...passwords },
  });
}

function connected(url: string): Redis {
  const redis = new Redis(url, {
    retryStrategy: () => null,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    disableClientInfo: true,
  });
  // Each command reports its own failure, and a rejected log-in is reported with the first command.
  redis.on("error", () => {});
  onTestFinished(() => redis.disconnect());
  return redis;
}

function urlOf(server: RedisServer, user: string, password: string): string {
  return `redis://${user}:${password}@${server.host}:${server.port}`;
}

function passwordOf(user: string): string {
  return PASSWORDS[NAMES.find((name) => USERS_BY_PASSWORD[name] === user) as PasswordName];
}
