/**
 * Runs once before all tests: finds a real Redis by the first way that works, and keeps the reason why each earlier one did not.
 * In order: REDIS_URL, a container engine, a server on PATH, Debian's package unpacked without root. Prints which one it is, and why.
 */
import { existsSync } from "node:fs";
import { Redis } from "ioredis";
import type { TestProject } from "vitest/node";
import { type RedisBinary, redisBinaryOnPath, unpackDebianRedis } from "./redis-binary.js";
import { launchRedisServer } from "./redis-server.js";
import { asStoreUser } from "./shipped-users.js";

const ENGINE_SOCKET = "/var/run/docker.sock";

/** The server that the whole run shares. */
interface SharedServer {
  readonly url: string;
  readonly version: string;
  readonly origin: string;
  stop(): Promise<void>;
}

/** @throws Error that lists every way tried and why it failed; also when REDIS_URL is set and no Redis replies there. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const { REDIS_URL, DOCKER_HOST, PATH = "" } = process.env;
  const whyNotRunning: string[] = [];
  const whyNoBinary: string[] = [];
  const running =
    foundOr(whyNotRunning, await redisAtUrl(REDIS_URL)) ?? foundOr(whyNotRunning, await redisInContainer(DOCKER_HOST));
  // Tests start servers of their own from it, also where one is running.
  const binary = foundOr(whyNoBinary, redisBinaryOnPath(PATH)) ?? foundOr(whyNoBinary, await unpackDebianRedis());
  const shared = running ?? (binary && (await launchShared(binary)));
  if (!shared) {
    throw new Error(
      [
        "The tests run against a real Redis, and none was found:",
        ...[...whyNotRunning, ...whyNoBinary].map((reason) => `  - ${reason}`),
        "Do one of these: set REDIS_URL; start a container engine; or install redis-server or valkey-server.",
      ].join("\n"),
    );
  }
  const ownServerUnavailable = binary ? undefined : `no Redis of its own can be started: ${whyNoBinary.join("; ")}`;
  const whyNotEarlier = running === undefined ? [...whyNotRunning, ...whyNoBinary] : whyNotRunning;
  console.log([`Redis ${shared.version} for the tests: ${shared.origin}`, ...whyNotEarlier].join("; "));
  if (ownServerUnavailable !== undefined) console.log(ownServerUnavailable);
  const storeUrl = asStoreUser(shared.url);
  const usersUnavailable =
    storeUrl === shared.url ? "the Redis of REDIS_URL has not the users of deploy/redis/make-acl.sh" : undefined;
  if (usersUnavailable !== undefined) console.log(`${usersUnavailable}: tests of their rights are skipped`);
  project.provide("redis", { url: shared.url, storeUrl, binary, ownServerUnavailable, usersUnavailable });
  return () => shared.stop();
}

async function launchShared(binary: RedisBinary): Promise<SharedServer> {
  const server = await launchRedisServer(binary);
  return { url: server.url, version: binary.version, origin: binary.origin, stop: () => server.dispose() };
}

/** What was found; else undefined, and the reason is added to the others. */
function foundOr<Found extends object>(reasons: string[], found: Found | string): Found | undefined {
  if (typeof found !== "string") return found;
  reasons.push(found);
  return undefined;
}

async function redisAtUrl(url: string | undefined): Promise<SharedServer | string> {
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
async function redisInContainer(dockerHost: string | undefined): Promise<SharedServer | string> {
  if (!dockerHost && !existsSync(ENGINE_SOCKET)) return `no container engine at ${ENGINE_SOCKET}`;
  try {
    const { startRedisContainer } = await import("./redis-container.js");
    let version = "";
    const { url, image, remove } = await startRedisContainer(async (at) => (version = await versionAt(at)));
    return { url, version, origin: `a container of ${image}`, stop: remove };
  } catch (error) {
    return `the container engine could not start a Redis: ${(error as Error).message}`;
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
