/**
 * The leases that the same process got before and after a lease: what an operator asks for next. Reads a bounded part of the ledger on each
 * side. Knows the ledger only as a port.
 */
import { setImmediate as turn } from "node:timers/promises";
import type { Holder, LeaseNeighbors, LedgerEntry } from "@callnumber/protocol/wire";
import { lastLedgerIdOf } from "../ledger/lease-identity.js";
import { type LedgerReader } from "../stores/store.js";

/** The most leases that are read on each side. */
const NEIGHBOR_SCAN_MAX = 1_000;
/** Leases in the first read: where few processes work, the leases of one are close to each other. */
const FIRST_STEP = 32;
/** Leases in one read: lease requests wait meanwhile. */
const STEP_MAX = 128;

/** Where a search ended, as text. Made on demand: number formatting takes long to load. */
const ENDS = {
  ledger: (side: string) => `nothing ${side} it`,
  bound: (side: string) =>
    `none of the ${NEIGHBOR_SCAN_MAX.toLocaleString("en-US")} leases ${side} it (farther ones were not read)`,
} as const;

/** One side of a lease. */
interface Side {
  readonly neighbor: LedgerEntry | null;
  /** Why there is none. */
  readonly end: keyof typeof ENDS;
}

/** Reads a part of the ledger in the order of the search, from an entry on. */
type Read = (from: LedgerEntry, limit: number) => Promise<readonly LedgerEntry[]>;

export async function neighborsOf(
  ledger: LedgerReader,
  namespace: string,
  lease: LedgerEntry,
): Promise<LeaseNeighbors> {
  const [before, after] = await Promise.all([
    nearest(lease, (at, limit) =>
      ledger.leases(namespace, { from: lastLedgerIdOf(at) - 1, direction: "newest_first", limit }),
    ),
    nearest(lease, (at, limit) =>
      ledger.leases(namespace, { from: lastLedgerIdOf(at) + 1, direction: "oldest_first", limit }),
    ),
  ]);
  return {
    previous: before.neighbor,
    next: after.neighbor,
    explanation: `the same process got ${formatSide(before, "before")}, and ${formatSide(after, "after")}`,
  };
}

async function nearest(lease: LedgerEntry, read: Read): Promise<Side> {
  let from = lease;
  let step = FIRST_STEP;
  for (let readCount = 0; readCount < NEIGHBOR_SCAN_MAX; ) {
    const limit = Math.min(step, NEIGHBOR_SCAN_MAX - readCount);
    const leases = await read(from, limit);
    const neighbor = leases.find(({ holder }) => isSameProcess(holder, lease.holder));
    if (neighbor !== undefined) return { neighbor, end: "ledger" };
    if (leases.length < limit) return { neighbor: null, end: "ledger" };
    from = leases.at(-1) as LedgerEntry;
    readCount += limit;
    step = Math.min(2 * step, STEP_MAX);
    // An embedded store returns without a pause: requests that wait meanwhile come first.
    await turn();
  }
  return { neighbor: null, end: "bound" };
}

function isSameProcess(one: Holder, other: Holder): boolean {
  return one.name === other.name && one.host === other.host && one.pid === other.pid;
}

function formatSide({ neighbor, end }: Side, side: "before" | "after"): string {
  return neighbor === null ? ENDS[end](side) : `${formatRuns(neighbor)} ${side} it`;
}

function formatRuns({ firstRun, runCount }: LedgerEntry): string {
  return runCount === 1 ? `run ${firstRun}` : `runs ${firstRun}-${firstRun + runCount - 1}`;
}
