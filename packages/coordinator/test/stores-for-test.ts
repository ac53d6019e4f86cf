/** Opens each kind of store, empty, for one test, and removes it afterwards. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { removeWithMarkers } from "../../../test/markers-of-stores.js";
import {
  asCoordinator,
  postgresUnavailable,
  sharedPostgres,
  shippedRights,
  storeUrlAt,
} from "../../../test/postgres/test-postgres.js";
import { asOperator } from "../../../test/redis/shipped-users.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { IS_MUTATION } from "../../../test/size-of-run.js";
import { MemoryStore } from "../src/stores/memory.js";
import type { PostgresAddress } from "../src/stores/postgres/address.js";
import { PostgresStore } from "../src/stores/postgres/store.js";
import { RedisStore, type RedisStoreOptions } from "../src/stores/redis/store.js";
import { SqliteStore } from "../src/stores/sqlite/store.js";
import type { Store } from "../src/stores/store.js";
import { parseStoreUrl } from "../src/stores/store-url.js";
import type { OpenForTest } from "./store-contract.js";

export const openMemory: OpenForTest = async (options = {}) => ({
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

/** A coordinator's store, which an operator's stands in for where a record is recovered: a coordinator's user may not do that. */
export const openRedis: OpenForTest = async () => {
  const url = sharedRedis().storeUrl;
  // No replica follows the test Redis: waiting for acknowledgements would only take time.
  const open = (as: string) => RedisStore.open({ ...redisAddressForTest(as), quorumTimeoutMs: 20 });
  const operators = await open(asOperator(url));
  let own = await open(url);
  return {
    store: recoveredBy(operators, own),
    async reopen() {
      await own.close();
      own = await open(url);
      return recoveredBy(operators, own);
    },
    async remove() {
      await own.close();
      await operators.close();
    },
  };
};

export function postgresAddressForTest(url: string): PostgresAddress {
  const address = parseStoreUrl(url);
  if (address.kind !== "postgres") throw new Error(`${url} is no PostgreSQL`);
  return address;
}

/** A coordinator's store, with the rights that we ship, in a schema that its owner has made. */
export const openPostgres: OpenForTest = async () => {
  const url = storeUrlAt(sharedPostgres());
  const { schema } = postgresAddressForTest(url);
  const owner = await PostgresStore.open({ ...postgresAddressForTest(url), create: true });
  await owner.close();
  const client = new pg.Client({ connectionString: sharedPostgres() });
  await client.connect();
  for (const statement of shippedRights(schema)) await client.query(statement);
  const open = () => PostgresStore.open({ ...postgresAddressForTest(asCoordinator(url)), create: false });
  let store = await open();
  return {
    store,
    async reopen() {
      await store.close();
      store = await open();
      return store;
    },
    async remove() {
      await store.close();
      await client.query(`DROP SCHEMA ${schema} CASCADE`);
      await client.end();
    },
  };
};

/** False in a mutation run of TypeScript, where no server is started. */
export const HAS_REDIS = !IS_MUTATION;
export const HAS_POSTGRES = HAS_REDIS && postgresUnavailable() === undefined;

/** The memory store first. */
export const STORES: readonly [name: string, open: OpenForTest][] = [
  ["memory", openMemory],
  ["embedded", openSqlite],
  ...(HAS_REDIS ? [["Redis", openRedis] as [string, OpenForTest]] : []),
  ...(HAS_POSTGRES ? [["PostgreSQL", openPostgres] as [string, OpenForTest]] : []),
];

function recoveredBy(operators: Store, own: Store): Store {
  const apply: Store["apply"] = (namespace, expected, change) =>
    (change.acceptsCopy ? operators : own).apply(namespace, expected, change);
  return new Proxy(own, {
    get(store, name) {
      if (name === "apply") return apply;
      const value: unknown = Reflect.get(store, name);
      return typeof value === "function" ? value.bind(store) : value;
    },
  });
}
