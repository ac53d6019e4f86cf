/** Opens the store of an address. Loads the adapter, and its library, only for the kind that is opened. */
import type { Bounds } from "../guard/bounds.js";
import type { Store } from "./store.js";
import type { StoreAddress } from "./store-url.js";

export { removeRestartMarker } from "./sqlite/restart-marker.js";

export interface OpenStore {
  readonly store: Store;
  /** Whether the store was made by this call: it holds no namespace yet. */
  readonly isNew: boolean;
}

export interface OpenStoreOptions {
  /** Whether an embedded store may be made where there is none; other stores need no permission. */
  readonly create: boolean;
  /** Called where there is no embedded store, before anything is made. @throws when one is known to have been there. */
  readonly mustNotBeLost?: () => void;
  /** Opens also a copy of an embedded store, for nothing but `recover`. Default false. */
  readonly acceptCopy?: boolean;
  /** No other machine ever uses the embedded store, although its file system could be shared. Default false. */
  readonly allowNetworkFileSystem?: boolean;
  /** The coordinator's clock, in milliseconds. */
  readonly now?: () => number;
  /** The bounds of the guard; tests replace the default. */
  readonly bounds?: Bounds;
}

/** @throws CoordinatorError `store_not_found`, `store_locked`, `store_copied`, `store_corrupt`, `store_schema_unsupported`, `store_unavailable`. */
export async function openStore(address: StoreAddress, options: OpenStoreOptions): Promise<OpenStore> {
  const { create, mustNotBeLost = () => {}, acceptCopy = false, allowNetworkFileSystem = false, ...clock } = options;
  if (address.kind === "memory") {
    const { MemoryStore } = await import("./memory.js");
    return { store: new MemoryStore(clock), isNew: true };
  }
  if (address.kind === "sqlite") {
    const { SqliteStore } = await import("./sqlite/store.js");
    const file = { path: address.path, create, mustNotBeLost, acceptCopy, allowNetworkFileSystem };
    const store = new SqliteStore({ ...file, ...clock });
    return { store, isNew: store.isNew };
  }
  const { RedisStore } = await import("./redis/store.js");
  return { store: await RedisStore.open({ ...address, ...clock }), isNew: false };
}
