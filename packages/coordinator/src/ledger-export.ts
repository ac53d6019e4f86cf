/**
 * The whole ledger, or what a filter asks for of it, oldest first, as long as somebody takes it: in steps, so that it needs the
 * same memory at any length, and leases that are asked for meanwhile come first.
 */
import { setImmediate as turn } from "node:timers/promises";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { lastLedgerIdOf } from "./ledger/lease-identity.js";
import { isBeyond, type LedgerFilter, ledgerIdSince, passes } from "./ledger-filter.js";
import type { LedgerReader } from "./store.js";

/** Entries read at once: leases wait while a store reads them. */
const EXPORT_STEP = 100;

export interface ExportStep {
  /** Those of the step that pass the filter; perhaps none. */
  readonly leases: readonly LedgerEntry[];
  /** Ledger id up to which the ledger was looked through. */
  readonly upToRun: number;
}

/** Ends at the newest lease there is by then; a lease that is granted meanwhile is in it, or stands above the last `upToRun`. */
export async function* exportedSteps(
  ledger: LedgerReader,
  namespace: string,
  filter: LedgerFilter,
): AsyncGenerator<ExportStep, void> {
  const isWanted = passes(filter);
  let after = await startOf(ledger, namespace, filter);
  while (after !== undefined) {
    const leases = await ledger.exportLeases(namespace, { afterLedgerId: after, limit: EXPORT_STEP });
    const end = leases.findIndex((lease) => isBeyond(filter, lease));
    const within = end < 0 ? leases : leases.slice(0, end);
    const last = within.at(-1);
    if (last === undefined) return;
    after = lastLedgerIdOf(last);
    yield { leases: within.filter(isWanted), upToRun: after };
    if (end >= 0) return;
    await turn();
  }
}

/** Above this ledger id it begins; undefined when nothing is as young as is asked for. */
async function startOf(
  ledger: LedgerReader,
  namespace: string,
  { fromRun = 0, leasedFromMs }: LedgerFilter,
): Promise<number | undefined> {
  const belowRun = Math.max(fromRun - 1, 0);
  if (leasedFromMs === undefined) return belowRun;
  const first = await ledgerIdSince(ledger, namespace, leasedFromMs);
  return first && Math.max(first - 1, belowRun);
}
