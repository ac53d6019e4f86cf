/**
 * How much of a version's run space is used, by which holders, how fast, and when it ends: from the record and the newest leases, which are
 * bounded in number and age and read a few at a time, so that lease requests come first.
 */

import { INSTANT_MAX_MS } from "@callnumber/protocol/api";
import { RUN_MAX } from "@callnumber/protocol/codec";
import type { CapacityResponse, HolderUse, LedgerEntry, UseRate } from "@callnumber/protocol/schemas";
import type { NamespaceRecord } from "../guard/record.js";
import { storeIdFields } from "../guard/store-id.js";
import { isSkipped } from "../ledger/lease-identity.js";
import { leasesInSteps } from "../ledger/read-ledger.js";
import type { LedgerReader } from "../stores/store.js";
import { runSpaceOf } from "./status.js";

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
 * would outweigh years of leases. The first window is as short as what there is to measure. A longer one is left out when the namespace
 * is younger, where it would repeat a shorter one, or when the window does not reach back to its beginning.
 */
function ratesOf(record: NamespaceRecord, window: LeaseWindow, nowMs: number): readonly UseRate[] {
  const lifeMs = nowMs - storeIdFields(record.storeId).initializedAtMs;
  const measurableMs = Math.min(lifeMs, nowMs - window.completeFromMs);
  const isFull = window.leases.length >= WINDOW_LEASES_MAX;
  const runsLeft = RUN_MAX - record.highWaterMark;
  return RATE_WINDOWS_MS.filter((longestMs, index) => index === 0 || longestMs <= measurableMs).map((longestMs) => {
    // Never less than a minute: a first lease is no rate.
    const windowMs = Math.max(Math.min(longestMs, measurableMs), MINUTE_MS);
    const runs = runCountOf(leasesSince(window, nowMs - windowMs).leases);
    // Infinite, or no number, while nothing was leased.
    const endsAtMs = nowMs + Math.floor((runsLeft / runs) * windowMs);
    // An hour of use is enough, and so are more leases than are read.
    const isForecast = (windowMs >= HOUR_MS || isFull) && endsAtMs <= INSTANT_MAX_MS;
    return { windowMs, runs, runsPerDay: (runs / windowMs) * DAY_MS, exhaustedAtMs: isForecast ? endsAtMs : null };
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
      if (isSkipped(lease)) continue;
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

/** A holder that leased or reported so lately is live, unless it has closed its leases since. */
export const LIVE_MS = 10 * 60_000;

/** Returns the holders of these leases, those with most runs first. */
export function holderUses(leases: readonly LedgerEntry[], nowMs: number): readonly HolderUse[] {
  const found = new Map<string, LedgerEntry[]>();
  for (const lease of leases) {
    const { name } = lease.holder;
    const known = found.get(name);
    if (known === undefined) found.set(name, [lease]);
    else known.push(lease);
  }
  const total = runCountOf(leases);
  const uses = Array.from(found, ([name, own]): HolderUse => {
    const runCount = runCountOf(own);
    const lastLeaseAtMs = own.reduce((last, { leasedAtMs }) => Math.max(last, leasedAtMs), 0);
    return {
      name,
      leaseCount: own.length,
      runCount,
      share: runCount / total,
      lastLeaseAtMs,
      isLive: isLive(own, nowMs),
    };
  });
  return uses.sort((one, other) => other.runCount - one.runCount || (one.name < other.name ? -1 : 1));
}

/** Of the leases of one holder. A process between two leases is live; one that closed a lease, and holds no other, has ended. */
function isLive(leases: readonly LedgerEntry[], nowMs: number): boolean {
  const recent = leases.filter(
    ({ leasedAtMs, progress }) => nowMs - Math.max(leasedAtMs, progress?.reportedAtMs ?? 0) < LIVE_MS,
  );
  const processOf = ({ holder: { host, pid } }: LedgerEntry) => `${pid} ${host}`;
  const closing = new Set(recent.filter(({ progress }) => progress?.state === "closed").map(processOf));
  return recent.some((lease) => !hasEnded(lease) || !closing.has(processOf(lease)));
}

/** Whether no number of the lease comes any more. */
function hasEnded({ firstRun, runCount, progress }: LedgerEntry): boolean {
  if (progress === null || progress.state === "open") return false;
  return progress.state !== "exhausted" || progress.run === firstRun + runCount - 1;
}
