/**
 * Once before all tests: finds a Redis, says which and how, and starts the one server that the whole run shares.
 * What tests may know of it goes through `provide`; they read it with `test-redis.ts`.
 */
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";
import { findRedis, type RedisFound, type RunningRedis } from "./find-redis.js";
import { launchRedisServer } from "./redis-server.js";
import { asStoreUser } from "./shipped-users.js";

const CACHE_FOLDER = fileURLToPath(new URL("../../node_modules/.cache/redis", import.meta.url));

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const found = await findRedis(process.env, CACHE_FOLDER);
  const { binary, whyNotRunning, whyNoBinary } = found;
  const shared = found.running ?? (await launchShared(found));
  const waysBefore = found.running ? whyNotRunning : [...whyNotRunning, ...whyNoBinary];
  const how = [shared.origin, ...waysBefore].join("; ");
  const ownServerUnavailable = binary ? undefined : `no Redis of its own can be started: ${whyNoBinary.join("; ")}`;

  console.log(`Redis ${shared.version} for the tests: ${how}.`);
  if (found.running)
    console.log(ownServerUnavailable ?? `Servers of their own: Redis ${binary?.version}, ${binary?.origin}.`);

  project.provide("redis", {
    url: shared.url,
    storeUrl: asStoreUser(shared.url),
    version: shared.version,
    how,
    binary,
    ownServerUnavailable,
  });
  return () => shared.stop();
}

async function launchShared({ binary }: RedisFound): Promise<RunningRedis> {
  if (!binary) throw new Error("findRedis answers a running server or a program, or throws");
  const server = await launchRedisServer(binary);
  return { url: server.url, version: binary.version, origin: binary.origin, stop: () => server.dispose() };
}
