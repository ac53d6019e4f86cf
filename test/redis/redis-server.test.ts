import { existsSync } from "node:fs";
import { Redis } from "ioredis";
import { beforeEach, describe, expect, it } from "vitest";
import { ownServerUnavailable, type RedisServer, sharedRedis, startRedisServer } from "./test-redis.js";

describe("a server of a test's own", () => {
  beforeEach((context) => {
    const reason = ownServerUnavailable();
    context.skip(reason !== undefined, reason);
  });

  it("is a real Redis that runs scripts and knows its own process", async () => {
    const server = await startRedisServer();
    await withClient(server.url, async (redis) => {
      expect(await redis.eval("return redis.call('incrby', KEYS[1], ARGV[1])", 1, "counter", "7")).toBe(7);
      expect(await redis.info("server")).toContain(`process_id:${server.pid}\r\n`);
    });
  });

  it("keeps what it acknowledged through kill -9 and a new start, on the same port and folder", async () => {
    const server = await startRedisServer({ config: { appendonly: "yes", appendfsync: "always" } });
    await withClient(server.url, (redis) => redis.set("mark", "41"));
    const { pid, url } = server;

    await server.kill("SIGKILL");
    expect(isAlive(pid)).toBe(false);
    await server.start();

    expect(server.pid).not.toBe(pid);
    expect(server.url).toBe(url);
    await withClient(url, async (redis) => expect(await redis.get("mark")).toBe("41"));
  });

  it("keeps nothing through kill -9 unless its config says so", async () => {
    const server = await startRedisServer();
    await withClient(server.url, (redis) => redis.set("mark", "41"));
    await server.kill("SIGKILL");
    await server.start();
    await withClient(server.url, async (redis) => expect(await redis.get("mark")).toBeNull());
  });

  it("leaves no process after stop, frozen or not, and keeps its folder", async () => {
    for (const frozen of [false, true]) {
      const server = await startRedisServer();
      if (frozen) await server.kill("SIGSTOP");
      await server.stop();
      expect(isAlive(server.pid)).toBe(false);
      expect(existsSync(server.directory)).toBe(true);
      await expect(withClient(server.url, (redis) => redis.ping())).rejects.toThrow(/ECONNREFUSED/);
    }
  });

  it("is told by its own process and not by whoever answers on its port", async () => {
    const first = await startRedisServer();
    await expect(startRedisServer({ port: first.port })).rejects.toThrow(
      /ended before it answered[^]*address already in use/i,
    );
  });

  it("answers with the end of its log when its config is refused", async () => {
    await expect(startRedisServer({ config: { appendfsync: "perhaps" } })).rejects.toThrow(/appendfsync perhaps/);
  });

  it("lets in the users that we ship and the tests' own, and nobody else, unless a test says why", async () => {
    const server = await startRedisServer();
    const stranger = `redis://${server.host}:${server.port}`;
    await expect(withClient(stranger, (redis) => redis.ping())).rejects.toThrow(/NOAUTH/);
    const whoIs = (url: string) => withClient(url, async (redis) => (await redis.acl("LIST")).length);
    expect(await whoIs(server.url)).toBe(7);
    await expect(whoIs(server.storeUrl)).rejects.toThrow(/NOPERM/);
    await withClient(server.storeUrl, async (redis) => expect(await redis.ping()).toBe("PONG"));

    const open = await startRedisServer({ openBecause: "this is what is tried here" });
    expect(open.url).toBe(`redis://${open.host}:${open.port}`);
    await withClient(open.url, async (redis) => expect(await redis.acl("WHOAMI")).toBe("default"));
  });

  it("is ready when it refuses a stranger and has loaded its data", async () => {
    const openBecause = "its one user is the default user, with a password";
    const server = await startRedisServer({ config: { requirepass: "secret" }, openBecause });
    await expect(withClient(server.url, (redis) => redis.ping())).rejects.toThrow(/NOAUTH/);
    await withClient(withPassword(server, "secret"), async (redis) => expect(await redis.ping()).toBe("PONG"));
  });
});

it("the Redis that all tests share answers, with the version it was announced with", async () => {
  const { url, version, how } = sharedRedis();
  expect(how).not.toBe("");
  await withClient(url, async (redis) => expect(await redis.info("server")).toContain(`_version:${version}\r\n`));
});

async function withClient<Result>(url: string, use: (redis: Redis) => Promise<Result>): Promise<Result> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null, enableReadyCheck: false });
  let cause: Error | undefined;
  redis.on("error", (error) => (cause = error));
  try {
    await redis.connect();
    return await use(redis);
  } catch (error) {
    throw cause ?? error;
  } finally {
    redis.disconnect();
  }
}

function withPassword(server: RedisServer, password: string): string {
  return `redis://:${password}@${server.host}:${server.port}`;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
