/**
 * Finds a real Redis for the tests, by the first way that works, and keeps the reason why each earlier one did not.
 * In order: REDIS_URL, a container engine, a server on PATH, Debian's package unpacked without root.
 */
import { existsSync } from "node:fs";
import { Redis } from "ioredis";
import { type RedisBinary, redisBinaryOnPath, unpackDebianRedis } from "./redis-binary.js";

const IMAGE = "redis:8-alpine";
const REDIS_PORT = 6379;
const ENGINE_SOCKET = "/var/run/docker.sock";

export interface RedisFound {
  /** A server that is up already. Without one, the whole run shares a server started from `binary`. */
  running: RunningRedis | undefined;
  /** What tests start servers of their own from. It can be there in addition to a running server. */
  binary: RedisBinary | undefined;
  whyNoBinary: string[];
}

export interface RunningRedis {
  url: string;
  version: string;
  origin: string;
  stop(): Promise<void>;
}

/** @throws Error that lists every way tried and why it failed; also when REDIS_URL is set and no Redis replies there. */
export async function findRedis(environment: NodeJS.ProcessEnv, cacheFolder: string): Promise<RedisFound> {
  const whyNotRunning: string[] = [];
  const whyNoBinary: string[] = [];
  const running =
    foundOr(whyNotRunning, await redisAtUrl(environment.REDIS_URL)) ??
    foundOr(whyNotRunning, await redisInContainer(environment.DOCKER_HOST));
  const binary =
    foundOr(whyNoBinary, redisBinaryOnPath(environment.PATH ?? "")) ??
    foundOr(whyNoBinary, await unpackDebianRedis(cacheFolder));
  if (running || binary) return { running, binary, whyNoBinary };
  throw new Error(
    [
      "The tests run against a real Redis, and none was found:",
      ...[...whyNotRunning, ...whyNoBinary].map((reason) => `  - ${reason}`),
      "Do one of these: set REDIS_URL; start a container engine; or install redis-server or valkey-server.",
    ].join("\n"),
  );
}

/** What was found; else undefined, and the reason is added to the others. */
function foundOr<Found extends object>(reasons: string[], found: Found | string): Found | undefined {
  if (typeof found !== "string") return found;
  reasons.push(found);
  return undefined;
}

async function redisAtUrl(url: string | undefined): Promise<RunningRedis | string> {
  if (!url) return "REDIS_URL is not set";
  try {
    return { url, version: await versionAt(url), origin: "REDIS_URL", stop: async () => {} };
  } catch (error) {
    const cause = (error as Error).message;
    throw new Error(`REDIS_URL is set and no Redis answers there (${cause}). Start it, or unset REDIS_URL.`, {
      cause: error,
    });
  }
}

/** Loading testcontainers takes seconds, and most machines have no container engine: so that is found out first. */
async function redisInContainer(dockerHost: string | undefined): Promise<RunningRedis | string> {
  if (!dockerHost && !existsSync(ENGINE_SOCKET)) return `no container engine at ${ENGINE_SOCKET}`;
  try {
    const { GenericContainer } = await import("testcontainers");
    const container = await new GenericContainer(IMAGE).withExposedPorts(REDIS_PORT).start();
    const url = `redis://${container.getHost()}:${container.getMappedPort(REDIS_PORT)}`;
    const stop = async () => void (await container.stop());
    return { url, version: await versionAt(url), origin: `a container of ${IMAGE}`, stop };
  } catch (error) {
    return `the container engine could not start ${IMAGE}: ${(error as Error).message}`;
  }
}

async function versionAt(url: string): Promise<string> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null, maxRetriesPerRequest: 0 });
  // Without a listener ioredis prints each error, and the one that counts is thrown below anyway.
  let cause: Error | undefined;
  redis.on("error", (error) => (cause = error));
  try {
    await redis.connect();
    const info = await redis.info("server");
    return /^(?:valkey|redis)_version:(\S+)/m.exec(info)?.[1] ?? "unknown";
  } catch (error) {
    throw cause ?? error;
  } finally {
    redis.disconnect();
  }
}
