/** Which leases of another store a store takes over, as a pure function; lua/import.lua says the same for Redis. */
import { isSameLease, lastLedgerIdOf } from "../lease-copy.js";
import { refused } from "../refusals.js";
import type { LeaseCopy } from "../store.js";

/** What stands in the store that takes them over. */
export interface Importing {
  readonly namespace: string;
  readonly hasRecord: boolean;
  /** 0 for none. */
  readonly newestLedgerId: number;
  readonly leaseAt: (lastLedgerId: number) => LeaseCopy | undefined;
}

/**
 * Those of the copies, oldest first, that are not there yet.
 * @throws CoordinatorError `store_replaced` when another lease stands where a copy belongs; `namespace_already_initialised`
 *   when one is missing in a ledger that has its record, and so is complete.
 */
export function leasesToAppend(importing: Importing, copies: readonly LeaseCopy[]): readonly LeaseCopy[] {
  const { namespace, hasRecord, leaseAt } = importing;
  let newest = importing.newestLedgerId;
  return copies.filter((copy) => {
    const last = lastLedgerIdOf(copy.entry);
    const there = leaseAt(last);
    if (there !== undefined ? !isSameLease(there, copy) : newest > last - copy.entry.runCount) {
      throw refused("FOREIGN", `its ledger holds another lease at run ${last}`, namespace);
    }
    if (there !== undefined) return false;
    if (hasRecord) throw refused("ALREADY", "the record exists", namespace);
    newest = last;
    return true;
  });
}
