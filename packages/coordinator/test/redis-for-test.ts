/** Redis stores, coordinators and clients for the tests of Redis alone. What is opened here ends with its test. */
import { Redis } from "ioredis";
import { expect, onTestFinished, type TestContext } from "vitest";
import { startFaultyProxy } from "../../../test/redis/faulty-proxy.js";
import { command } from "../../../test/redis/redis-command.js";
import { asStoreUser, storeUrlAt } from "../../../test/redis/shipped-users.js";
import { ownServerUnavailable, type RedisServer, startRedisServer } from "../../../test/redis/test-redis.js";
import { Coordinator, type CoordinatorOptions } from "../src/coordinator.js";
import { RedisStore, type RedisStoreOptions } from "../src/stores/redis/store.js";
import { parseStoreUrl } from "../src/stores/store-url.js";
import { keptLog, SHORT_BOUNDS } from "./leasing-crowd.js";
import { type InHandOptions, inHand, type StoreInHand, withNamespace } from "./store-in-hand.js";

/** For `beforeEach`: skips tests that start servers where none can be started. */
export function needsOwnServer({ skip }: TestContext): void {
  const reason = ownServerUnavailable();
  skip(reason !== undefined, reason);
}

type StoreTiming = Partial<Pick<RedisStoreOptions, "quorumTimeoutMs">>;

/** A store on a server, a Sentinel group or a Cluster. For a tester's URL it logs in as the user that we ship for it. */
export async function storeAt(url: string, options: StoreTiming = {}): Promise<RedisStore> {
  const address = parseStoreUrl(asStoreUser(url));
  if (!("keyPrefix" in address)) throw new Error(`${url} is no Redis`);
  const store = await RedisStore.open({ ...address, ...options });
  onTestFinished(() => store.close());
  return store;
}

export async function newStoreAt(url: string, options?: InHandOptions): Promise<StoreInHand> {
  return withNamespace(await storeAt(url), options);
}

/** A coordinator with short bounds, which gives heartbeats from the start. */
export async function redisCoordinatorAt(url: string, options: Partial<CoordinatorOptions> = {}) {
  const store = await storeAt(url);
  const { log, events } = keptLog();
  const coordinator = new Coordinator({ store, name: "test", bounds: SHORT_BOUNDS, log, ...options });
  onTestFinished(() => coordinator.stopHeartbeat());
  coordinator.startHeartbeat();
  /** The reason of each recovery of a namespace. */
  const recoveriesOf = (namespace: string) =>
    events
      .filter(({ event, fields }) => event === "recovered" && fields["namespace"] === namespace)
      .map(({ fields }) => fields["reason"]);
  return { store, coordinator, events, recoveriesOf };
}

/** A client of the test's own, past the store. */
export function clientAt(url: string): Redis {
  const redis = new Redis(url);
  onTestFinished(() => redis.disconnect());
  return redis;
}

/** Expects that clients without a user are rejected, that these users and the test's own are connected, and that none was denied a command. */
export async function expectUsers(nodes: readonly RedisServer[], users: readonly string[]): Promise<void> {
  const seen = new Set<string>();
  for (const node of nodes) {
    const clients = String(await command(node, "CLIENT", "LIST"));
    for (const [, user = ""] of clients.matchAll(/ user=(\S+)/g)) seen.add(user);
    expect(await command(node, "ACL", "LOG")).toEqual([]);
    await expect(command({ url: `redis://${node.host}:${node.port}` }, "PING")).rejects.toThrow(/NOAUTH/);
  }
  // A replica runs what its master sends without a user.
  expect([...seen].sort()).toEqual(["(superuser)", ...users, "tester"]);
}

/** A server, reached directly, and by `lease` through a proxy. */
export async function throughProxy(options?: StoreTiming) {
  const server = await startRedisServer();
  const proxy = await startFaultyProxy(server);
  onTestFinished(() => proxy.close());
  const direct = await newStoreAt(server.url);
  const store = await storeAt(storeUrlAt("127.0.0.1", proxy.port), options);
  const { lease } = inHand(store, { storeId: direct.storeId });
  return { server, proxy, direct, store, lease };
}

/** Retries until the connection is there again, and the step is not older than short bounds allow on a busy machine. */
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
