/**
 * Runs leased over time, in equal steps. The newest leases are counted one by one; what lies before them is told from where the mark
 * stood at the beginning of each step, and then runs that were passed over count too.
 */
import { HISTORY_STEP_COUNT, type HistoryAnswer } from "@callnumber/protocol/operator";
import { type LedgerEntry, ledgerIdOf } from "@callnumber/protocol/wire";
import { type CapacityLedger, lastLedgerIdOf, lookBack } from "./capacity-look.js";

/** The steps of `windowMs` that end with the one under way; each begins at a multiple of its length, so that it stays the same when asked again. */
export async function historyOf(
  ledger: CapacityLedger,
  namespace: string,
  windowMs: number,
  nowMs: number,
): Promise<HistoryAnswer> {
  const stepMs = windowMs / HISTORY_STEP_COUNT;
  const fromMs = (Math.floor(nowMs / stepMs) - (HISTORY_STEP_COUNT - 1)) * stepMs;
  const beginMs = (step: number) => fromMs + step * stepMs;
  const { leases, completeFromMs } = await lookBack(ledger, namespace, fromMs);
  const runs = new Array<number>(HISTORY_STEP_COUNT).fill(0);
  for (const { leasedAtMs, runCount } of leases) {
    // A lease of this very moment, by a store whose clock is a little ahead.
    const step = Math.min(Math.floor((leasedAtMs - fromMs) / stepMs), HISTORY_STEP_COUNT - 1);
    runs[step] = (runs[step] ?? 0) + runCount;
  }
  const whole = Math.ceil((completeFromMs - fromMs) / stepMs);
  let first = whole > 0 ? await ledger.firstLeaseSince(namespace, beginMs(0)) : undefined;
  for (let step = 0; step < whole; step++) {
    const next = await ledger.firstLeaseSince(namespace, beginMs(step + 1));
    runs[step] = await runsBetween(ledger, namespace, first, next);
    first = next;
  }
  return { namespace, fromMs, stepMs, runs };
}

/** From one lease on, up to another one; what an advance of the version gave up between them was never used. */
async function runsBetween(
  ledger: CapacityLedger,
  namespace: string,
  first: LedgerEntry | undefined,
  next: LedgerEntry | undefined,
): Promise<number> {
  if (first === undefined || next === undefined) return 0;
  if (first.version === next.version) return next.firstRun - first.firstRun;
  const [last] = await ledger.listLeases(namespace, { belowLedgerId: ledgerIdOf(first.version + 1, 0), limit: 1 });
  const ended = last === undefined ? 0 : lastLedgerIdOf(last) - ledgerIdOf(first.version, first.firstRun) + 1;
  return Math.max(ended, 0) + next.firstRun - 1;
}
