/**
 * Runs leased over time, in equal steps. The newest leases are counted one by one; what lies before them is told from where the mark
 * stood at the beginning of each step, and then runs that were passed over count too.
 */
import { HISTORY_STEP_COUNT, type HistoryAnswer } from "@callnumber/protocol/operator";
import { type LedgerEntry, ledgerIdOf } from "@callnumber/protocol/wire";
import { type CapacityLedger, lookBack } from "./capacity-look.js";
import { lastLedgerIdOf } from "./ledger/lease-identity.js";

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
  const runs = Array.from({ length: HISTORY_STEP_COUNT }, () => 0);
  for (const { leasedAtMs, runCount } of leases) {
    // A lease of this very moment, by a store whose clock is a little ahead.
    const step = Math.min(Math.floor((leasedAtMs - fromMs) / stepMs), HISTORY_STEP_COUNT - 1);
    runs[step] = (runs[step] ?? 0) + runCount;
  }
  const [newest] = leases;
  if (newest === undefined || completeFromMs <= fromMs) return { namespace, fromMs, stepMs, runs };
  const end = { version: newest.version, firstRun: newest.firstRun + newest.runCount };
  const startOf = async (step: number) => (await ledger.firstLeaseSince(namespace, beginMs(step))) ?? end;
  let start = await startOf(0);
  for (let step = 0; beginMs(step) < completeFromMs; step++) {
    const next = await startOf(step + 1);
    runs[step] = await runsBetween(ledger, namespace, start, next);
    start = next;
  }
  return { namespace, fromMs, stepMs, runs };
}

type Start = Pick<LedgerEntry, "version" | "firstRun">;

/** What an advance of the version gave up between the two was never used. */
async function runsBetween(ledger: CapacityLedger, namespace: string, start: Start, end: Start): Promise<number> {
  if (start.version === end.version) return end.firstRun - start.firstRun;
  const [last] = await ledger.listLeases(namespace, { belowLedgerId: ledgerIdOf(start.version + 1, 0), limit: 1 });
  const ended = last === undefined ? 0 : lastLedgerIdOf(last) - ledgerIdOf(start.version, start.firstRun) + 1;
  return Math.max(ended, 0) + end.firstRun - 1;
}
