/** Redis stores and servers for the tests that are about Redis alone. What is opened here ends with the test. */
import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { type FaultyProxy, startFaultyProxy } from "../../../test/redis/faulty-proxy.js";
import { asStoreUser, storeUrlAt } from "../../../test/redis/shipped-users.js";
import { ownServerUnavailable, type RedisServer, startRedisServer } from "../../../test/redis/test-redis.js";
import { RedisStore, type RedisStoreOptions } from "../src/stores/redis/store.js";
import { parseStoreUrl } from "../src/stores/store-url.js";
import { leaseFrom, type StoreInHand, withNamespace } from "./store-in-hand.js";

export type Skip = (reason: string) => never;

/** A server of the test's own with the users that we ship, or the reason why there is none. */
export async function ownServer(config: Record<string, string>, skip: Skip): Promise<RedisServer> {
  const reason = ownServerUnavailable();
  if (reason !== undefined) skip(reason);
  return await startRedisServer({ config });
}

/** One that lets everybody in. */
export async function openServer(
  openBecause: string,
  config: Record<string, string>,
  skip: Skip,
): Promise<RedisServer> {
  const reason = ownServerUnavailable();
  if (reason !== undefined) skip(reason);
  return await startRedisServer({ config, openBecause });
}

type StoreTiming = Partial<Pick<RedisStoreOptions, "now" | "bounds" | "quorumTimeoutMs">>;

/** A tester's URL will do: the store logs in as the user that we ship for it. */
export async function storeAt(url: string, options: StoreTiming = {}): Promise<RedisStore> {
  const address = parseStoreUrl(asStoreUser(url));
  if (address.kind !== "redis") throw new Error(`${url} is no Redis`);
  // Nobody follows most test servers: waiting for acknowledgements would only take time.
  const store = await RedisStore.open({ ...address, quorumTimeoutMs: 20, ...options });
  onTestFinished(() => store.close());
  return store;
}

export async function newStoreAt(url: string, options?: StoreTiming): Promise<StoreInHand> {
  return withNamespace(await storeAt(url, options));
}

/** A client of the test's own, past the store. */
export function clientAt(url: string): Redis {
  const redis = new Redis(url);
  onTestFinished(() => redis.disconnect());
  return redis;
}

export interface BesideProxy {
  readonly server: RedisServer;
  readonly proxy: FaultyProxy;
  /** Reaches the server past the proxy. */
  readonly direct: StoreInHand;
  /** Reaches it through the proxy. */
  lease(own?: Parameters<StoreInHand["lease"]>[0]): ReturnType<StoreInHand["lease"]>;
}

export async function throughProxy(skip: Skip): Promise<BesideProxy> {
  const server = await ownServer({}, skip);
  const proxy = await startFaultyProxy(server);
  onTestFinished(() => proxy.close());
  const direct = await newStoreAt(server.url);
  const store = await storeAt(storeUrlAt("127.0.0.1", proxy.port));
  return {
    server,
    proxy,
    direct,
    lease: (own = {}) => leaseFrom(store, direct.commands.lease(own)),
  };
}

/** Tries until the connection is there again, and the question is not older than short bounds allow on a busy machine. */
export async function untilDone<T>(
  step: () => Promise<T>,
  refusals: readonly string[] = ["store_unavailable", "clock_skew"],
): Promise<T> {
  for (;;) {
    try {
      return await step();
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === undefined || !refusals.includes(code)) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

export async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 5));
}
