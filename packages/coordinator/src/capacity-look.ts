/**
 * The newest leases of a namespace, for whatever is computed from them: bounded in number and in age, and read a few at a time, so that
 * leases that wait meanwhile come first. Knows the store only through its plain listing.
 */
import { setImmediate as turn } from "node:timers/promises";
import { RUN_COUNT, VERSION_COUNT } from "@callnumber/protocol/codec";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { lastLedgerIdOf } from "./ledger/lease-identity.js";
import type { LedgerReader } from "./store.js";

/** What a look may cost at the most. */
export const LOOK_LEASES_MAX = 10_000;
/** At once. */
const LOOK_STEP = 100;

export type CapacityLedger = Pick<LedgerReader, "listLeases" | "firstLeaseSince">;

export interface Look {
  /** Newest first; none older than asked for. */
  readonly leases: readonly LedgerEntry[];
  /** From this instant on, none is missing. */
  readonly completeFromMs: number;
}

/**
 * The newest leases, back to `fromMs`, but not more than `LOOK_LEASES_MAX`. No caller reads more than a week back, and no younger lease is
 * ever trimmed (`RETENTION_DAYS_MIN`).
 */
export async function lookBack(ledger: CapacityLedger, namespace: string, fromMs: number): Promise<Look> {
  const leases: LedgerEntry[] = [];
  let belowLedgerId = VERSION_COUNT * RUN_COUNT;
  while (leases.length < LOOK_LEASES_MAX) {
    const limit = Math.min(LOOK_STEP, LOOK_LEASES_MAX - leases.length);
    const found = await ledger.listLeases(namespace, { belowLedgerId, limit });
    for (const lease of found) {
      if (lease.leasedAtMs < fromMs) return { leases, completeFromMs: fromMs };
      leases.push(lease);
      belowLedgerId = lastLedgerIdOf(lease);
    }
    if (found.length < limit) return { leases, completeFromMs: fromMs };
    await turn();
  }
  // Others of the same millisecond may follow.
  return { leases, completeFromMs: (leases.at(-1)?.leasedAtMs ?? Number.POSITIVE_INFINITY) + 1 };
}

/** The part of a look from an instant on. */
export function lookSince({ leases, completeFromMs }: Look, fromMs: number): Look {
  const olderAt = leases.findIndex(({ leasedAtMs }) => leasedAtMs < fromMs);
  return {
    leases: olderAt === -1 ? leases : leases.slice(0, olderAt),
    completeFromMs: Math.max(completeFromMs, fromMs),
  };
}

export function runCountOf(leases: readonly LedgerEntry[]): number {
  return leases.reduce((sum, { runCount }) => sum + runCount, 0);
}
