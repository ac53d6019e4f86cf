/**
 * What tests use: one Redis that all share, and servers of their own for tests that kill, freeze or configure one.
 * A server of its own ends with the test file that started it.
 */
import { randomUUID } from "node:crypto";
import { afterAll, inject } from "vitest";
import type { RedisBinary } from "./redis-binary.js";
import {
  type DisposableRedisServer,
  launchRedisServer,
  type RedisServer,
  type RedisServerOptions,
} from "./redis-server.js";
import { asOperator } from "./shipped-users.js";

declare module "vitest" {
  interface ProvidedContext {
    redis: {
      url: string;
      storeUrl: string;
      binary: RedisBinary | undefined;
      ownServerUnavailable: string | undefined;
      usersUnavailable: string | undefined;
    };
  }
}

export type { RedisServer, RedisServerOptions } from "./redis-server.js";

export interface SharedRedis {
  /** For a user that may do everything. */
  url: string;
  /** For a store under test, with a place of its own (`prefix=`) among the keys that its user may touch. */
  storeUrl: string;
  /** The same place, for the operator who moves or recovers the store. */
  operatorUrl: string;
}

/** The Redis of the whole run. It may be someone's own and is never flushed: use keys with a prefix that no other test has. */
export function sharedRedis(): SharedRedis {
  const { url, storeUrl } = inject("redis");
  const place = new URL(storeUrl);
  place.searchParams.set("prefix", `callnumber:test-${randomUUID()}:`);
  return { url, storeUrl: place.href, operatorUrl: asOperator(place.href) };
}

/** Why `startRedisServer` cannot work here, for `ctx.skip(reason)`; undefined when it can. */
export function ownServerUnavailable(): string | undefined {
  return inject("redis").ownServerUnavailable;
}

/** Why every client of the shared Redis has all rights, for `ctx.skip(reason)`; undefined when it has the users that we ship. */
export function usersUnavailable(): string | undefined {
  return inject("redis").usersUnavailable;
}

/**
 * Starts a server on 127.0.0.1 with the users that we ship. It keeps nothing on disk unless `config` says so. Resolves when it answers PING.
 * @throws Error when `ownServerUnavailable()` gives a reason, or, with the end of its log, when the server does not start.
 */
export async function startRedisServer(options: RedisServerOptions = {}): Promise<RedisServer> {
  const { binary, ownServerUnavailable: reason } = inject("redis");
  if (!binary) throw new Error(reason);
  const server = await launchRedisServer(binary, options);
  started.push(server);
  return server;
}

const started: DisposableRedisServer[] = [];
// Each test file loads this module again, so this runs at the end of each file that uses it.
afterAll(async () => {
  for (const server of started) await server.dispose();
});
