/** Reading a ledger, wherever its leases lie: a store, or a store and what was moved out of it. */
import { CoordinatorError } from "./errors.js";
import type { Store } from "./store.js";

/** All reject, besides as the store does, with `ledger_archive_unavailable`. */
export type LedgerReader = Pick<Store, "findLease" | "listLeases" | "firstLeaseSince" | "exportLeases">;

/** With the record that the leases belong to. */
export type RecordedLedger = LedgerReader & Pick<Store, "readNamespace">;

/** What stands in files that can't be read is missing; for those who have an answer without it. */
export function isArchiveAway(error: unknown): boolean {
  return error instanceof CoordinatorError && error.code === "ledger_archive_unavailable";
}
