/** Opens each kind of store, empty, for one test, and removes it afterwards. */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { MemoryStore } from "../src/stores/memory-store.js";
import { RedisStore } from "../src/stores/redis-store.js";
import { SqliteStore } from "../src/stores/sqlite-store.js";
import { parseStoreUrl } from "../src/stores/store-url.js";
import type { OpenForTest } from "./store-contract.js";

export const openMemory: OpenForTest = async () => ({
  store: new MemoryStore(),
  reopen: () => Promise.reject(new Error("a memory store ends with its process")),
  remove: async () => {},
});

export const openSqlite: OpenForTest = async () => {
  const folder = await mkdtemp(join(tmpdir(), "callnumber-test-"));
  const path = join(folder, "store.db");
  let store = new SqliteStore({ path, create: true });
  return {
    store,
    async reopen() {
      await store.close();
      store = new SqliteStore({ path, create: false });
      return store;
    },
    async remove() {
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
};

/** A prefix of its own for each test: the server may hold other things. */
function redisUrlForTest(): string {
  const url = new URL(sharedRedis().url);
  url.searchParams.set("prefix", `test-${randomUUID()}:`);
  return url.href;
}

export const openRedis: OpenForTest = async () => {
  const address = parseStoreUrl(redisUrlForTest());
  if (address.kind !== "redis") throw new Error("the test Redis has no redis URL");
  let store = await RedisStore.open(address);
  return {
    store,
    async reopen() {
      await store.close();
      store = await RedisStore.open(address);
      return store;
    },
    remove: () => store.close(),
  };
};
