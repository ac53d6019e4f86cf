/** Reading a ledger, wherever its leases lie: a store, or a store and what was moved out of it. */
import type { Store } from "./store.js";

export type LedgerReader = Pick<Store, "findLease" | "listLeases" | "firstLeaseSince" | "exportLeases">;
