/** What is true of a lease in whatever store it stands. Pure. */
import { type LedgerEntry, ledgerIdOf } from "@callnumber/protocol/wire";
import type { LeaseCopy } from "./store.js";

/** What the ledger is ordered by. */
export function lastLedgerIdOf({ version, firstRun, runCount }: Omit<LedgerEntry, "progress">): number {
  return ledgerIdOf(version, firstRun + runCount - 1);
}

/** Whether two stores keep the same lease. The progress may differ: a holder may have reported to one of them since. */
export function isSameLease(one: LeaseCopy, other: LeaseCopy): boolean {
  return textOf(one) === textOf(other);
}

function textOf({ entry, leaseNonce }: LeaseCopy): string {
  const { version, firstRun, runCount, leasedAtMs, holder, coordinator } = entry;
  return JSON.stringify([version, firstRun, runCount, leasedAtMs, holder, coordinator, leaseNonce]);
}
