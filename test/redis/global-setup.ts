/** Runs once before all tests: finds a Redis, says which and how, and starts the one server that the whole run shares. */
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";
import { findRedis, type RedisFound, type RunningRedis } from "./find-redis.js";
import { launchRedisServer } from "./redis-server.js";
import { asStoreUser } from "./shipped-users.js";

const CACHE_FOLDER = fileURLToPath(new URL("../../node_modules/.cache/redis", import.meta.url));

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const found = await findRedis(process.env, CACHE_FOLDER);
  const { binary, whyNoBinary } = found;
  const shared = found.running ?? (await launchShared(found));
  const ownServerUnavailable = binary ? undefined : `no Redis of its own can be started: ${whyNoBinary.join("; ")}`;
  console.log(`Redis ${shared.version} for the tests: ${shared.origin}.`);
  if (ownServerUnavailable !== undefined) console.log(ownServerUnavailable);
  project.provide("redis", { url: shared.url, storeUrl: asStoreUser(shared.url), binary, ownServerUnavailable });
  return () => shared.stop();
}

async function launchShared({ binary }: RedisFound): Promise<RunningRedis> {
  if (!binary) throw new Error("findRedis returns a running server or a program, or throws");
  const server = await launchRedisServer(binary);
  return { url: server.url, version: binary.version, origin: binary.origin, stop: () => server.dispose() };
}
