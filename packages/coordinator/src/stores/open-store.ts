/** Opens the store of an address. Loads the adapter, and its library, only for the kind that is opened. */
import type { SqliteStoreOptions } from "./sqlite/store.js";
import type { Store } from "./store.js";
import type { StoreAddress } from "./store-url.js";

export { removeRestartMarker } from "./sqlite/restart-marker.js";

/** A store that is open, until its `close`. */
export interface OpenStore {
  readonly store: Store;
  /** Whether the store was made by this call: it holds no namespace yet. */
  readonly isNew: boolean;
}

/** All but `create` and `mustNotBeLost` are about embedded stores. A Redis needs no permission to be a store. */
export type OpenStoreOptions = Omit<SqliteStoreOptions, "path" | "machine">;

/** @throws CoordinatorError `store_not_found`, `store_locked`, `store_copied`, `store_corrupt`, `store_schema_unsupported`, `store_unavailable`. */
export async function openStore(address: StoreAddress, options: OpenStoreOptions): Promise<OpenStore> {
  if (address.kind === "memory") {
    const { MemoryStore } = await import("./memory.js");
    return { store: new MemoryStore(options), isNew: true };
  }
  if (address.kind === "sqlite") {
    const { SqliteStore } = await import("./sqlite/store.js");
    const store = new SqliteStore({ ...options, path: address.path });
    return { store, isNew: store.isNew };
  }
  if (address.kind === "postgres") {
    const { PostgresStore } = await import("./postgres/store.js");
    const store = await PostgresStore.open({ ...address, ...options });
    return { store, isNew: store.isNew };
  }
  const { RedisStore } = await import("./redis/store.js");
  return { store: await RedisStore.open({ ...address, ...options }), isNew: false };
}
