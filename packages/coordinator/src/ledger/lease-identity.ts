/** Identifies a lease in any store or file: its place in the ledger, its runs, and whether two leases are the same. Pure. */
import { ledgerIdOf, type Progress } from "@callnumber/protocol/api";
import type { LedgerEntry } from "@callnumber/protocol/schemas";

/** What the ledger is ordered by. */
export function lastLedgerIdOf({ version, firstRun, runCount }: Omit<LedgerEntry, "progress">): number {
  return ledgerIdOf(version, firstRun + runCount - 1);
}

/** Whether an entry has the runs that a recovery skipped, which were never leased. */
export function isSkipped({ progress }: Pick<LedgerEntry, "progress">): boolean {
  return progress?.state === "skipped";
}

/** Whether the first entry at or after a run's ledger id is the one that holds the run. */
export function leaseHoldsRun(lease: LedgerEntry, ledgerId: number): boolean {
  const lastLedgerId = lastLedgerIdOf(lease);
  return ledgerId <= lastLedgerId && ledgerId > lastLedgerId - lease.runCount;
}

/** Whether two stores keep the same lease. The progress may differ: a holder may have reported to one of them since. */
export function isSameLease(one: LedgerEntry, other: LedgerEntry): boolean {
  return textOf(one) === textOf(other);
}

/** Whether two reports, or none, are the same. */
export function isSameProgress(one: Progress | null, other: Progress | null): boolean {
  if (one === null || other === null) return one === other;
  const { run, lastSequence, state, reportedAtMs } = one;
  const isAsFar = run === other.run && lastSequence === other.lastSequence;
  return isAsFar && state === other.state && reportedAtMs === other.reportedAtMs;
}

function textOf({ version, firstRun, runCount, leasedAtMs, holder, coordinator, tokenId, nonce }: LedgerEntry): string {
  return JSON.stringify([version, firstRun, runCount, leasedAtMs, holder, coordinator, tokenId, nonce]);
}
