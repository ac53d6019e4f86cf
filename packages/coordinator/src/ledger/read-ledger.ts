/**
 * Pages through the ledger, newest first, with filters. Knows the plain listing only, so that every store filters the same way,
 * and bounds the work of one page: a rare holder is found by following the cursor.
 */
import { setImmediate as turn } from "node:timers/promises";
import { CALL_NUMBER_BITS, SEQUENCE_BITS } from "@callnumber/protocol/codec";
import { LEASE_RUN_COUNT_MAX, type LedgerEntry, type TrimmedLeases } from "@callnumber/protocol/wire";
import { lastLedgerIdOf } from "./lease-identity.js";
import { isBefore, isSelective, type LedgerFilter, ledgerIdSince, passes } from "../ledger-filter.js";
import { trimmedIn } from "../retention/trimmed-leases.js";
import type { LedgerReader, Retention } from "../store.js";

/** Entries looked at for one page at the most. */
const SCAN_MAX = 10_000;
/** At once: leases wait while a store looks at them. */
const SCAN_STEP = 100;
const ABOVE_ALL_LEDGER_IDS = 2 ** (CALL_NUMBER_BITS - SEQUENCE_BITS);

export interface LedgerQuery extends LedgerFilter {
  /** 1 to 500. */
  readonly limit: number;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
}

export interface LedgerPage {
  readonly leases: readonly LedgerEntry[];
  readonly nextCursor: string | null;
  /** Where the ledger of the store ends and older leases were asked for, too: what was trimmed of it; else null. */
  readonly trimmed: TrimmedLeases | null;
}

export async function ledgerPage(ledger: LedgerReader, namespace: string, query: LedgerQuery): Promise<LedgerPage> {
  const leases: LedgerEntry[] = [];
  const isWanted = passes(query);
  let below = await startOf(ledger, namespace, query);
  for (let looked = 0; looked < SCAN_MAX; ) {
    const limit = isSelective(query) ? SCAN_STEP : Math.min(SCAN_STEP, query.limit - leases.length);
    const found = await ledger.listLeases(namespace, { belowLedgerId: below, limit });
    for (const entry of found) {
      if (isBefore(query, entry)) return { leases, nextCursor: null, trimmed: null };
      below = lastLedgerIdOf(entry);
      if (isWanted(entry)) leases.push(entry);
      if (leases.length === query.limit) return { leases, nextCursor: String(below), trimmed: null };
    }
    if (found.length < limit) {
      const trimmed = trimmedWithin(query, await ledger.readRetention(namespace));
      return { leases, nextCursor: null, trimmed };
    }
    looked += found.length;
    // A store within this process answers without a pause: requests that wait meanwhile come first.
    await turn();
  }
  return { leases, nextCursor: String(below), trimmed: null };
}

/** Null when nothing was trimmed that may pass the filter. */
function trimmedWithin({ fromRun = 0, leasedFromMs = 0 }: LedgerQuery, retention: Retention): TrimmedLeases | null {
  const { through, leasedAtMs } = retention;
  return through === 0 || through < fromRun || leasedAtMs < leasedFromMs ? null : trimmedIn(retention);
}

/** Below this ledger id the page begins. */
async function startOf(ledger: LedgerReader, namespace: string, query: LedgerQuery): Promise<number> {
  const { cursor, leasedToMs, toRun } = query;
  if (cursor !== undefined) return Number(cursor);
  // The lease that holds the run may end this far above it.
  const aboveRun = toRun === undefined ? ABOVE_ALL_LEDGER_IDS : toRun + LEASE_RUN_COUNT_MAX;
  const tooLate = leasedToMs === undefined ? undefined : await ledgerIdSince(ledger, namespace, leasedToMs);
  return Math.min(aboveRun, tooLate ?? ABOVE_ALL_LEDGER_IDS);
}
