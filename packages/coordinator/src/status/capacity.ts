/**
 * How much of a version's run space is used, by which holders, how fast, and when it ends: from the record and the newest leases, which are
 * bounded in number and age and read a few at a time, so that lease requests come first.
 */
import { RUN_MAX } from "@callnumber/protocol/codec";
import type { CapacityResponse, HolderUse } from "@callnumber/protocol/operator";
import { INSTANT_MAX_MS, type LedgerEntry, type UseRate } from "@callnumber/protocol/wire";
import { leasesInSteps } from "../ledger/read-ledger.js";
import type { LedgerReader, NamespaceRecord } from "../stores/store.js";
import { runSpaceOf, storeIdFields } from "./status.js";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Over which the rate of use is measured. */
const RATE_WINDOWS_MS: readonly number[] = [HOUR_MS, DAY_MS, 7 * DAY_MS];

/** Returns the figures without the alarms. */
export function capacityOf(
  record: NamespaceRecord,
  window: LeaseWindow,
  nowMs: number,
): Omit<CapacityResponse, "alarms"> {
  const { namespace, version, highWaterMark } = record;
  return {
    namespace,
    version,
    highWaterMark,
    ...runSpaceOf(record, nowMs),
    rates: ratesOf(record, window, nowMs),
    lookedAt: { leaseCount: window.leases.length, fromMs: window.leases.at(-1)?.leasedAtMs ?? null },
    holders: holderUses(window.leases, nowMs),
  };
}

/**
 * The runs leased over each window, and when the run space of the version ends at that rate. Skipped runs are no use: one recovery
 * would outweigh years of leases. A window is left out when the namespace is younger, where it would repeat a shorter one, or when
 * the window does not reach back to its beginning.
 */
function ratesOf(record: NamespaceRecord, window: LeaseWindow, nowMs: number): readonly UseRate[] {
  const lifeMs = nowMs - storeIdFields(record.storeId).initializedAtMs;
  const windowSpanMs = nowMs - window.completeFromMs;
  const runsLeft = RUN_MAX - record.highWaterMark;
  return RATE_WINDOWS_MS.filter((windowMs, index) => {
    if (index > 0) return windowMs <= Math.min(lifeMs, windowSpanMs);
    // So many leases within an hour are the rate that matters most.
    return windowMs <= windowSpanMs || window.leases.length >= WINDOW_LEASES_MAX;
  }).map((windowMs) => {
    const runs = runCountOf(leasesSince(window, nowMs - windowMs).leases);
    // Never over less than a minute: a first lease is no rate.
    const measuredMs = Math.max(Math.min(windowMs, lifeMs, windowSpanMs), MINUTE_MS);
    // Infinite, or no number, while nothing was leased.
    const endsAtMs = nowMs + Math.floor((runsLeft / runs) * measuredMs);
    const exhaustedAtMs = endsAtMs <= INSTANT_MAX_MS ? endsAtMs : null;
    return { windowMs, runs, runsPerDay: (runs / measuredMs) * DAY_MS, exhaustedAtMs };
  });
}

/** The most leases that are read. */
export const WINDOW_LEASES_MAX = 10_000;

export type CapacityLedger = Pick<LedgerReader, "leases">;

export interface LeaseWindow {
  /** Newest first; none older than requested. */
  readonly leases: readonly LedgerEntry[];
  /** From this instant on, none is missing. */
  readonly completeFromMs: number;
}

/**
 * Returns the newest leases, back to `fromMs`, but not more than `WINDOW_LEASES_MAX`. No caller reads more than a week back, and no younger lease is
 * ever trimmed (`RETENTION_DAYS_MIN`).
 */
export async function recentLeases(ledger: CapacityLedger, namespace: string, fromMs: number): Promise<LeaseWindow> {
  const leases: LedgerEntry[] = [];
  for await (const step of leasesInSteps(ledger, namespace, { direction: "newest_first" })) {
    for (const lease of step) {
      if (lease.leasedAtMs < fromMs) return { leases, completeFromMs: fromMs };
      leases.push(lease);
      // Others of the same millisecond may follow.
      if (leases.length === WINDOW_LEASES_MAX) return { leases, completeFromMs: lease.leasedAtMs + 1 };
    }
  }
  return { leases, completeFromMs: fromMs };
}

/** Returns the part of a window from an instant on. */
export function leasesSince({ leases, completeFromMs }: LeaseWindow, fromMs: number): LeaseWindow {
  const olderAt = leases.findIndex(({ leasedAtMs }) => leasedAtMs < fromMs);
  return {
    leases: olderAt === -1 ? leases : leases.slice(0, olderAt),
    completeFromMs: Math.max(completeFromMs, fromMs),
  };
}

export function runCountOf(leases: readonly LedgerEntry[]): number {
  return leases.reduce((sum, { runCount }) => sum + runCount, 0);
}

/** A holder that leased or reported so lately is live. */
export const LIVE_MS = 10 * 60_000;

/** Returns the holders of these leases, those with most runs first. */
export function holderUses(leases: readonly LedgerEntry[], nowMs: number): readonly HolderUse[] {
  const found = new Map<string, Pick<HolderUse, "leaseCount" | "runCount" | "lastLeaseAtMs"> & { heardAtMs: number }>();
  for (const { holder, runCount, leasedAtMs, progress } of leases) {
    const before = found.get(holder.name) ?? { leaseCount: 0, runCount: 0, lastLeaseAtMs: 0, heardAtMs: 0 };
    found.set(holder.name, {
      leaseCount: before.leaseCount + 1,
      runCount: before.runCount + runCount,
      lastLeaseAtMs: Math.max(before.lastLeaseAtMs, leasedAtMs),
      heardAtMs: Math.max(before.heardAtMs, leasedAtMs, progress?.reportedAtMs ?? 0),
    });
  }
  const total = runCountOf(leases);
  const uses = Array.from(found, ([name, { heardAtMs, ...use }]) => {
    return { name, ...use, share: use.runCount / total, isLive: nowMs - heardAtMs < LIVE_MS };
  });
  return uses.sort((one, other) => other.runCount - one.runCount || (one.name < other.name ? -1 : 1));
}
