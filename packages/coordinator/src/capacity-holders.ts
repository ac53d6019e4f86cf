/**
 * Who takes runs, and what becomes of them: from the ledger's entries of the newest leases, by the name of the holder. Pure.
 * A process is a holder's name, host and pid.
 */
import type { HolderUse } from "@callnumber/protocol/operator";
import type { Holder, LedgerEntry } from "@callnumber/protocol/wire";
import { runCountOf } from "./capacity-look.js";

/** A run that made fewer numbers was wasted. */
export const WASTED_BELOW_NUMBERS = 100;
/** Who leased or reported so lately is live. */
export const LIVE_MS = 10 * 60_000;
const HOSTS_MAX = 8;

/** What became of the runs of one lease, each counted once. */
interface Fate {
  /** Made at least `WASTED_BELOW_NUMBERS` numbers, as its holder said. */
  readonly used: number;
  /** Ended with fewer. */
  readonly wasted: number;
  /** Never left the coordinator. */
  readonly burnt: number;
  /** Nothing was heard yet. */
  readonly open: number;
}

/** What is known of one process, from its leases and its reports. */
interface Process {
  readonly name: string;
  readonly place: string;
  firstHeardMs: number;
  lastHeardMs: number;
}

/** The holders of these leases, those that took most first. */
export function holderUses(leases: readonly LedgerEntry[], nowMs: number): readonly HolderUse[] {
  const total = runCountOf(leases);
  const processes = processesOf(leases);
  const left = leftProcesses(processes, nowMs);
  const liveNames = new Set<string>();
  const processCounts = new Map<string, number>();
  for (const { name, lastHeardMs } of processes.values()) {
    processCounts.set(name, (processCounts.get(name) ?? 0) + 1);
    if (nowMs - lastHeardMs < LIVE_MS) liveNames.add(name);
  }
  const uses = Array.from(byName(leases), ([name, own]) => {
    const runCount = runCountOf(own);
    const fates = own.map((lease) => fateOf(lease, left.has(processOf(lease.holder))));
    return {
      name,
      hosts: [...new Set(own.map(({ holder }) => holder.host))].sort().slice(0, HOSTS_MAX),
      processCount: processCounts.get(name) ?? 0,
      leaseCount: own.length,
      runCount,
      share: runCount / total,
      wastedRunCount: sumOf(fates, "wasted"),
      burntRunCount: sumOf(fates, "burnt"),
      lastLeaseAtMs: own.reduce((last, { leasedAtMs }) => Math.max(last, leasedAtMs), 0),
      isLive: liveNames.has(name),
    };
  });
  return uses.sort((one, other) => other.runCount - one.runCount || (one.name < other.name ? -1 : 1));
}

/**
 * Of each holder, how many of its runs nobody knows to have made numbers: few for whoever uses up one run after the other, however many
 * those are.
 */
export function unusedRunCounts(leases: readonly LedgerEntry[]): ReadonlyMap<string, number> {
  return new Map(
    Array.from(byName(leases), ([name, own]) => {
      const fates = own.map((lease) => fateOf(lease, false));
      return [name, runCountOf(own) - sumOf(fates, "used")];
    }),
  );
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

function processOf({ name, host, pid }: Holder): string {
  return JSON.stringify([name, host, pid]);
}

function processesOf(leases: readonly LedgerEntry[]): ReadonlyMap<string, Process> {
  const processes = new Map<string, Process>();
  for (const { holder, leasedAtMs, progress } of leases) {
    const heardMs = Math.max(leasedAtMs, progress?.reportedAtMs ?? 0);
    const known = processes.get(processOf(holder));
    if (known === undefined) {
      const place = JSON.stringify([holder.name, holder.host]);
      processes.set(processOf(holder), { name: holder.name, place, firstHeardMs: leasedAtMs, lastHeardMs: heardMs });
    } else {
      known.firstHeardMs = Math.min(known.firstHeardMs, leasedAtMs);
      known.lastHeardMs = Math.max(known.lastHeardMs, heardMs);
    }
  }
  return processes;
}

/** Those that nobody hears of any more, and that others of the same name on the same host came after: what a crash leaves behind. */
function leftProcesses(processes: ReadonlyMap<string, Process>, nowMs: number): ReadonlySet<string> {
  const lastBeginMs = new Map<string, number>();
  for (const { place, firstHeardMs } of processes.values()) {
    lastBeginMs.set(place, Math.max(lastBeginMs.get(place) ?? 0, firstHeardMs));
  }
  const left = new Set<string>();
  for (const [process, { place, lastHeardMs }] of processes) {
    const isFollowed = (lastBeginMs.get(place) ?? 0) > lastHeardMs;
    if (isFollowed && nowMs - lastHeardMs >= LIVE_MS) left.add(process);
  }
  return left;
}

/** A holder uses the runs of a lease in their order. `isLeft`: its process is no more, and whatever it did not report is ended. */
function fateOf({ firstRun, runCount, progress }: LedgerEntry, isLeft: boolean): Fate {
  if (progress === null) return isLeft ? { ...NOTHING, wasted: runCount } : { ...NOTHING, open: runCount };
  const state: string = progress.state;
  if (state === "burnt") return { ...NOTHING, burnt: runCount };
  const before = progress.run - firstRun;
  const numbers = progress.lastSequence === null ? 0 : progress.lastSequence + 1;
  const hasMade = state === "exhausted" || numbers >= WASTED_BELOW_NUMBERS;
  const used = before + (hasMade ? 1 : 0);
  const isEnded = state === "closed" || isLeft;
  return { ...NOTHING, used, [isEnded ? "wasted" : "open"]: runCount - used };
}

const NOTHING: Fate = { used: 0, wasted: 0, burnt: 0, open: 0 };

function sumOf(fates: readonly Fate[], name: keyof Fate): number {
  return fates.reduce((sum, fate) => sum + fate[name], 0);
}
