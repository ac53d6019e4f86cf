/** What we ship for Redis, in a real Redis: the users of make-acl.sh and the settings of redis.conf. */
import { spawnSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { needsOwnServer } from "../../packages/coordinator/test/redis-for-test.js";
import { callnumber, folderForTest, REPOSITORY, serve } from "../processes/command.js";
import { makeAcl, PASSWORDS, passwordVariable } from "../redis/shipped-users.js";
import { type RedisServer, startRedisServer } from "../redis/test-redis.js";

/** The other users are there only where a group needs them. */
const NEEDED = ["callnumber", "operator"];
const USERS = Object.keys(PASSWORDS);

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
    "renamenx callnumber:{acl}:record callnumber:{acl}:other",
    "persist callnumber:{acl}:record",
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
    needsOwnServer(context);
    const include = JSON.stringify(join(REPOSITORY, "deploy", "redis", "redis.conf"));
    server = await startRedisServer({ config: { include } });
  });

  test("Redis rejects clients that do not log in, and the default user with any password", async () => {
    const { host, port } = server;
    await expect(connected(`redis://${host}:${port}`).ping()).rejects.toThrow(/NOAUTH/);
    for (const password of ["default", ...Object.values(PASSWORDS)]) {
      const asDefault = connected(`redis://default:${password}@${host}:${port}`);
      await expect(asDefault.ping()).rejects.toThrow(/WRONGPASS/);
    }
  });

  test("a coordinator leases", async () => {
    expect(await callnumber(["init", "--store", server.storeUrl])).toMatchObject({ code: 0 });
    const { url } = await serve(server.storeUrl);
    const next = await callnumber(["next", "--coordinator", url]);
    expect(next).toMatchObject({ code: 0, stderr: "", stdout: expect.stringMatching(/^[0-9A-Za-z]{8}\n$/) });
  });

  test.each(Object.entries(DENIED))("the user %s is denied what it does not need", async (user, commands) => {
    const redis = connected(urlOf(server, user));
    for (const words of commands) {
      const [name = "", ...parameters] = words.split(" ");
      await expect(redis.call(name, ...parameters), words).rejects.toThrow(DENIAL);
    }
  });

  test("the operator can read settings and take backups, and every lease is on disk before a response", async () => {
    const redis = connected(urlOf(server, "operator"));
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
  ["short", "secret", USERS],
  ["not fit for a URL", "a/password:with@characters?of#its-own-0123456789", USERS],
])("make-acl.sh makes no file when a password is %s", (_, password, users) => {
  for (const user of users) {
    const { status, stdout, stderr } = makeAcl({ ...PASSWORDS, [user]: password });
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toContain(passwordVariable(user));
    expect(stderr).toContain("openssl rand -hex 32");
  }
});

test("make-acl.sh makes the users that have a password, and no others", () => {
  for (const user of USERS) {
    const given = [...new Set([...NEEDED, user])];
    const { stdout } = makeAcl(Object.fromEntries(given.map((one) => [one, PASSWORDS[one]])));
    const users = given.map((one) => `user ${one} on `);
    expect(stdout.match(/^user \w+ o(?:n|ff) /gm)).toEqual(["user default off ", ...users]);
  }
});

test.for(["sha256sum", "shasum", "openssl"])("make-acl.sh needs no other program than %s", async (name, { skip }) => {
  skip(pathOf(name) === undefined, `no ${name} on PATH`);
  expect(makeAcl(PASSWORDS, await folderWith("sh", name))).toMatchObject({
    status: 0,
    stdout: makeAcl(PASSWORDS).stdout,
  });
});

test("make-acl.sh makes no file where no program makes a digest", async () => {
  const { status, stdout, stderr } = makeAcl(PASSWORDS, await folderWith("sh"));
  expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
  expect(stderr).toBe("make-acl: there is no sha256sum, shasum or openssl on PATH. Install one of them\n");
});

/** For a PATH with these programs alone. */
async function folderWith(...names: readonly string[]): Promise<string> {
  const folder = await folderForTest();
  for (const name of names) symlinkSync(pathOf(name) ?? "", join(folder, name));
  return folder;
}

function pathOf(name: string): string | undefined {
  return spawnSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).stdout.trim() || undefined;
}

test("make-acl.sh writes digests, and no password", () => {
  const { stdout } = makeAcl(PASSWORDS);
  expect(stdout.split("\n").filter(Boolean)).toHaveLength(USERS.length + 1);
  for (const password of Object.values(PASSWORDS)) expect(stdout).not.toContain(password);
});

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

function urlOf({ host, port }: RedisServer, user: string): string {
  return `redis://${user}:${PASSWORDS[user]}@${host}:${port}`;
}
