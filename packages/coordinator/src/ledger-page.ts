/**
 * Pages through the ledger, newest first, with filters. Knows the store's plain listing only, so that every store filters
 * the same way, and bounds the work of one page: a rare holder is found by following the cursor.
 */
import { setImmediate as turn } from "node:timers/promises";
import { CALL_NUMBER_BITS, SEQUENCE_BITS } from "@callnumber/protocol/codec";
import { type LedgerEntry, ledgerIdOf } from "@callnumber/protocol/wire";
import type { LedgerReader } from "./ledger.js";

/** Entries looked at for one page at the most. */
const SCAN_MAX = 10_000;
/** At once: leases wait while a store looks at them. */
const SCAN_STEP = 100;
const ABOVE_ALL_LEDGER_IDS = 2 ** (CALL_NUMBER_BITS - SEQUENCE_BITS);

export interface LedgerQuery {
  /** 1 to 500. */
  readonly limit: number;
  /** Name of the holder. */
  readonly holder?: string | undefined;
  /** Leased at this time or later. */
  readonly leasedFromMs?: number | undefined;
  /** Leased before this time. */
  readonly leasedToMs?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
}

export interface LedgerPage {
  readonly leases: readonly LedgerEntry[];
  readonly nextCursor: string | null;
}

export async function ledgerPage(ledger: LedgerReader, namespace: string, query: LedgerQuery): Promise<LedgerPage> {
  const leases: LedgerEntry[] = [];
  let below = await startOf(ledger, namespace, query);
  for (let looked = 0; looked < SCAN_MAX; ) {
    const limit = query.holder !== undefined ? SCAN_STEP : query.limit - leases.length;
    const found = await ledger.listLeases(namespace, { belowLedgerId: below, limit });
    for (const entry of found) {
      if (entry.leasedAtMs < (query.leasedFromMs ?? 0)) return { leases, nextCursor: null };
      below = lastLedgerIdOf(entry);
      if (query.holder === undefined || entry.holder.name === query.holder) leases.push(entry);
      if (leases.length === query.limit) return { leases, nextCursor: String(below) };
    }
    if (found.length < limit) return { leases, nextCursor: null };
    looked += found.length;
    // A store within this process answers without a pause: requests that wait meanwhile come first.
    await turn();
  }
  return { leases, nextCursor: String(below) };
}

/** Below this ledger id the page begins. */
async function startOf(ledger: LedgerReader, namespace: string, { cursor, leasedToMs }: LedgerQuery): Promise<number> {
  if (cursor !== undefined) return Number(cursor);
  if (leasedToMs === undefined) return ABOVE_ALL_LEDGER_IDS;
  const firstTooLate = await ledger.firstLeaseSince(namespace, leasedToMs);
  return firstTooLate === undefined ? ABOVE_ALL_LEDGER_IDS : lastLedgerIdOf(firstTooLate);
}

function lastLedgerIdOf({ version, firstRun, runCount }: LedgerEntry): number {
  return ledgerIdOf(version, firstRun + runCount - 1);
}
