/**
 * How much of a version's run space is used, by which holders, how fast, and when it ends: from the record and the newest leases, which are
 * bounded in number and age and read a few at a time, so that lease requests come first.
 */
import { setImmediate as turn } from "node:timers/promises";
import { RUN_MAX } from "@callnumber/protocol/codec";
import type { CapacityResponse, HolderUse } from "@callnumber/protocol/operator";
import { INSTANT_MAX_MS, type LedgerEntry, type UseRate } from "@callnumber/protocol/wire";
import { lastLedgerIdOf } from "../ledger/lease-identity.js";
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
/** Leases in one read. */
const READ_STEP = 100;

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
  let from: number | undefined;
  while (leases.length < WINDOW_LEASES_MAX) {
    const limit = Math.min(READ_STEP, WINDOW_LEASES_MAX - leases.length);
    const found = await ledger.leases(namespace, { from, direction: "newest_first", limit });
    for (const lease of found) {
      if (lease.leasedAtMs < fromMs) return { leases, completeFromMs: fromMs };
      leases.push(lease);
      from = lastLedgerIdOf(lease) - 1;
    }
    if (found.length < limit) return { leases, completeFromMs: fromMs };
    await turn();
  }
  // Others of the same millisecond may follow.
  return { leases, completeFromMs: (leases.at(-1)?.leasedAtMs ?? Number.POSITIVE_INFINITY) + 1 };
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

/** A run that made fewer numbers was wasted. */
export const WASTED_BELOW_NUMBERS = 100;
/** A process that leased or reported so lately is live. */
export const LIVE_MS = 10 * 60_000;
const HOSTS_MAX = 8;

/** Returns the holders of these leases, those with most runs first. */
export function holderUses(leases: readonly LedgerEntry[], nowMs: number): readonly HolderUse[] {
  const total = runCountOf(leases);
  const uses = Array.from(byName(leases), ([name, own]) => {
    const runCount = runCountOf(own);
    const processes = processesOf(own);
    const left = leftProcesses(processes, nowMs);
    const usages = own.map((lease) => usageOf(lease, left.has(processOf(lease))));
    return {
      name,
      hosts: [...new Set(own.map(({ holder }) => holder.host))].sort().slice(0, HOSTS_MAX),
      processCount: processes.size,
      leaseCount: own.length,
      runCount,
      share: runCount / total,
      wastedRunCount: sumOf(usages, "wasted"),
      discardedRunCount: sumOf(usages, "discarded"),
      lastLeaseAtMs: own.reduce((last, { leasedAtMs }) => Math.max(last, leasedAtMs), 0),
      isLive: [...processes.values()].some(({ lastHeardMs }) => nowMs - lastHeardMs < LIVE_MS),
    };
  });
  return uses.sort((one, other) => other.runCount - one.runCount || (one.name < other.name ? -1 : 1));
}

/** Returns how many runs of each holder are not known to have made numbers, greatest first: few where it uses up one run after the other. */
export function unusedRunCounts(
  leases: readonly LedgerEntry[],
): readonly (readonly [name: string, runCount: number])[] {
  const counts = Array.from(byName(leases), ([name, own]) => {
    const usages = own.map((lease) => usageOf(lease, false));
    return [name, runCountOf(own) - sumOf(usages, "used")] as const;
  });
  return counts.sort(([, one], [, other]) => other - one);
}

function byName(leases: readonly LedgerEntry[]): ReadonlyMap<string, readonly LedgerEntry[]> {
  const groups = new Map<string, LedgerEntry[]>();
  for (const lease of leases) {
    const group = groups.get(lease.holder.name);
    if (group === undefined) groups.set(lease.holder.name, [lease]);
    else group.push(lease);
  }
  return groups;
}

/** What is known of one process of a name, from its leases and its reports. */
interface Process {
  readonly host: string;
  readonly firstHeardMs: number;
  readonly lastHeardMs: number;
}

function processOf({ holder: { host, pid } }: LedgerEntry): string {
  return `${pid} ${host}`;
}

/** Returns the processes of leases of one name. */
function processesOf(leases: readonly LedgerEntry[]): ReadonlyMap<string, Process> {
  const processes = new Map<string, Process>();
  for (const lease of leases) {
    const { host } = lease.holder;
    const heardMs = Math.max(lease.leasedAtMs, lease.progress?.reportedAtMs ?? 0);
    const known = processes.get(processOf(lease)) ?? { firstHeardMs: Number.POSITIVE_INFINITY, lastHeardMs: 0 };
    const firstHeardMs = Math.min(known.firstHeardMs, lease.leasedAtMs);
    processes.set(processOf(lease), { host, firstHeardMs, lastHeardMs: Math.max(known.lastHeardMs, heardMs) });
  }
  return processes;
}

/** Returns processes without news that others on the same host followed: crashed ones. */
function leftProcesses(processes: ReadonlyMap<string, Process>, nowMs: number): ReadonlySet<string> {
  const lastBeginMs = new Map<string, number>();
  for (const { host, firstHeardMs } of processes.values()) {
    lastBeginMs.set(host, Math.max(lastBeginMs.get(host) ?? 0, firstHeardMs));
  }
  const isLeft = ({ host, lastHeardMs }: Process) =>
    (lastBeginMs.get(host) ?? 0) > lastHeardMs && nowMs - lastHeardMs >= LIVE_MS;
  return new Set([...processes].filter(([, process]) => isLeft(process)).map(([name]) => name));
}

/** What became of the runs of one lease, each counted once; of the others nothing was reported yet. */
interface LeaseUsage {
  /** Made at least `WASTED_BELOW_NUMBERS` numbers, as its holder said. */
  readonly used: number;
  /** Ended with fewer. */
  readonly wasted: number;
  /** Never left the coordinator. */
  readonly discarded: number;
}

/** A holder uses the runs of a lease in their order. `isLeft`: its process has ended without a report. */
function usageOf({ firstRun, runCount, progress }: LedgerEntry, isLeft: boolean): LeaseUsage {
  if (progress === null) return { used: 0, wasted: isLeft ? runCount : 0, discarded: 0 };
  const { run, lastSequence, state }: { run: number; lastSequence: number | null; state: string } = progress;
  if (state === "discarded") return { used: 0, wasted: 0, discarded: runCount };
  const hasMade = state === "exhausted" || (lastSequence ?? -1) + 1 >= WASTED_BELOW_NUMBERS;
  const used = run - firstRun + (hasMade ? 1 : 0);
  return { used, wasted: state === "closed" || isLeft ? runCount - used : 0, discarded: 0 };
}

function sumOf(usages: readonly LeaseUsage[], name: keyof LeaseUsage): number {
  return usages.reduce((sum, usage) => sum + usage[name], 0);
}
