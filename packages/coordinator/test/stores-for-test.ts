/** Opens each kind of store, empty, for one test, and removes it afterwards. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeWithMarkers } from "../../../test/markers-of-stores.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { MemoryStore } from "../src/stores/memory-store.js";
import { RedisStore, type RedisStoreOptions } from "../src/stores/redis-store.js";
import { SqliteStore } from "../src/stores/sqlite-store.js";
import { parseStoreUrl } from "../src/stores/store-url.js";
import type { OpenForTest } from "./store-contract.js";

export const openMemory: OpenForTest = async (options) => ({
  store: new MemoryStore(options),
  reopen: () => Promise.reject(new Error("a memory store ends with its process")),
  remove: async () => {},
});

export const openSqlite: OpenForTest = async (options) => {
  const folder = await mkdtemp(join(tmpdir(), "callnumber-test-"));
  const path = join(folder, "store.db");
  const open = (create: boolean) => new SqliteStore({ path, create, ...options });
  let store = open(true);
  return {
    store,
    async reopen() {
      await store.close();
      store = open(false);
      return store;
    },
    async remove() {
      await store.close();
      await removeWithMarkers(folder);
    },
  };
};

/** A place of its own for each test: the server may hold other things. */
export function redisAddressForTest(url = sharedRedis().storeUrl): RedisStoreOptions {
  const address = parseStoreUrl(url);
  if (address.kind !== "redis") throw new Error("the test Redis has no redis URL");
  return address;
}

export const openRedis: OpenForTest = (options) => opened(redisAddressForTest(), options);

/** For what a coordinator's user may not do: a record is recovered, or taken over from another store. */
export const openRedisAsOperator: OpenForTest = (options) =>
  opened(redisAddressForTest(sharedRedis().operatorUrl), options);

async function opened(address: RedisStoreOptions, options: Parameters<OpenForTest>[0]): ReturnType<OpenForTest> {
  // Nobody follows the test Redis: waiting for acknowledgements would only take time.
  const open = () => RedisStore.open({ ...address, quorumTimeoutMs: 20, ...options });
  let store = await open();
  return {
    store,
    async reopen() {
      await store.close();
      store = await open();
      return store;
    },
    remove: () => store.close(),
  };
}
