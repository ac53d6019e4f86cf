/** Reading a ledger, wherever its leases lie: a store, or a store and what was moved out of it. */
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { CoordinatorError } from "./errors.js";
import { lastLedgerIdOf } from "./lease-identity.js";
import type { Store } from "./store.js";

/** All reject, besides as the store does, with `ledger_archive_unavailable`. */
export type LedgerReader = Pick<Store, "findLease" | "listLeases" | "firstLeaseSince" | "exportLeases">;

/** With the record that the leases belong to. */
export type RecordedLedger = LedgerReader & Pick<Store, "readNamespace">;

/**
 * `listLeases`, down to where the archive begins when it can't be read: `isAway` tells that older ones stand there.
 * @throws CoordinatorError for everything else.
 */
export async function listReadable(
  ledger: Pick<LedgerReader, "listLeases">,
  namespace: string,
  { belowLedgerId, limit }: Parameters<LedgerReader["listLeases"]>[1],
): Promise<{ readonly leases: readonly LedgerEntry[]; readonly isAway: boolean }> {
  for (let tried = limit; tried >= 1; tried = Math.floor(tried / 2)) {
    try {
      const leases = await ledger.listLeases(namespace, { belowLedgerId, limit: tried });
      if (tried === limit || leases.length === 0) return { leases, isAway: false };
      const rest = { belowLedgerId: lastLedgerIdOf(leases.at(-1) as LedgerEntry), limit: limit - leases.length };
      const older = await listReadable(ledger, namespace, rest);
      return { leases: [...leases, ...older.leases], isAway: older.isAway };
    } catch (error) {
      if (!isArchiveAway(error)) throw error;
    }
  }
  return { leases: [], isAway: true };
}

/** What stands in files that can't be read is missing; for those who have an answer without it. */
export function isArchiveAway(error: unknown): boolean {
  return error instanceof CoordinatorError && error.code === "ledger_archive_unavailable";
}
