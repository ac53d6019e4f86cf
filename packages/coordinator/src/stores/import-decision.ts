/** Which leases of another store a store takes over, as a pure function; lua/import.lua says the same for Redis. */
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { refused } from "../guard/refusals.js";
import { isSameLease, lastLedgerIdOf } from "../ledger/lease-identity.js";

/** What stands in the store that takes them over. */
export interface Importing {
  readonly namespace: string;
  readonly hasRecord: boolean;
  /** 0 for none. */
  readonly newestLedgerId: number;
  readonly leaseAt: (lastLedgerId: number) => LedgerEntry | undefined;
}

/**
 * Those of the leases, oldest first, that are not there yet.
 * @throws CoordinatorError `store_replaced` when another lease stands where one belongs; `namespace_already_initialised`
 *   when one is missing in a ledger that has its record, and so is complete.
 */
export function leasesToAppend(importing: Importing, leases: readonly LedgerEntry[]): readonly LedgerEntry[] {
  const { namespace, hasRecord, leaseAt } = importing;
  let newest = importing.newestLedgerId;
  return leases.filter((lease) => {
    const last = lastLedgerIdOf(lease);
    const there = leaseAt(last);
    if (there !== undefined ? !isSameLease(there, lease) : newest > last - lease.runCount) {
      throw refused("FOREIGN", `its ledger holds another lease at run ${last}`, namespace);
    }
    if (there !== undefined) return false;
    if (hasRecord) throw refused("ALREADY", "the record exists", namespace);
    newest = last;
    return true;
  });
}
