/** Which lease it is, in whatever store or file it stands: its place in the ledger, and whether two are the same one. Pure. */
import { type LedgerEntry, ledgerIdOf } from "@callnumber/protocol/wire";

/** What the ledger is ordered by. */
export function lastLedgerIdOf({ version, firstRun, runCount }: Omit<LedgerEntry, "progress">): number {
  return ledgerIdOf(version, firstRun + runCount - 1);
}

/** Whether two stores keep the same lease. The progress may differ: a holder may have reported to one of them since. */
export function isSameLease(one: LedgerEntry, other: LedgerEntry): boolean {
  return textOf(one) === textOf(other);
}

function textOf({ version, firstRun, runCount, leasedAtMs, holder, coordinator, nonce }: LedgerEntry): string {
  return JSON.stringify([version, firstRun, runCount, leasedAtMs, holder, coordinator, nonce]);
}
