/**
 * The leases that the same process got before and after a lease: what an operator looks at next. Knows the ledger only as a
 * port, and looks at a bounded part of the ledger on each side.
 */
import { setImmediate as turn } from "node:timers/promises";
import type { Holder, LeaseNeighbours, LedgerEntry } from "@callnumber/protocol/wire";
import { lastLedgerIdOf } from "../ledger/lease-identity.js";
import type { LedgerReader } from "../store.js";

/** Leases looked at on each side at the most. */
const NEIGHBOUR_SCAN_MAX = 1_000;
/** At first: a process that works by itself, or among few, got its leases close to each other. */
const FIRST_STEP = 32;
/** At once: leases wait while a store looks at them. */
const STEP_MAX = 128;

/** Where a look ended, and what that says: made when it is asked for, since a language's figures take long to load. */
const ENDS = {
  ledger: (side: string) => `nothing ${side} it`,
  bound: (side: string) =>
    `none of the ${NEIGHBOUR_SCAN_MAX.toLocaleString("en-US")} leases ${side} it (farther ones were not looked at)`,
} as const;

/** One side of a lease. */
interface Side {
  readonly neighbour: LedgerEntry | null;
  /** Why there is none. */
  readonly end: keyof typeof ENDS;
}

/** A part of the ledger, in the order in which it is looked at, from an entry on. */
type Read = (from: LedgerEntry, limit: number) => Promise<readonly LedgerEntry[]>;

export async function neighboursOf(
  ledger: LedgerReader,
  namespace: string,
  lease: LedgerEntry,
): Promise<LeaseNeighbours> {
  const [before, after] = await Promise.all([
    nearest(lease, (from, limit) => ledger.listLeases(namespace, { belowLedgerId: lastLedgerIdOf(from), limit })),
    nearest(lease, (from, limit) => ledger.exportLeases(namespace, { afterLedgerId: lastLedgerIdOf(from), limit })),
  ]);
  return {
    previous: before.neighbour,
    next: after.neighbour,
    explanation: `the same process got ${inWords(before, "before")}, and ${inWords(after, "after")}`,
  };
}

async function nearest(lease: LedgerEntry, read: Read): Promise<Side> {
  let from = lease;
  let step = FIRST_STEP;
  for (let looked = 0; looked < NEIGHBOUR_SCAN_MAX; ) {
    const limit = Math.min(step, NEIGHBOUR_SCAN_MAX - looked);
    const leases = await read(from, limit);
    const neighbour = leases.find(({ holder }) => isSameProcess(holder, lease.holder));
    if (neighbour !== undefined) return { neighbour, end: "ledger" };
    if (leases.length < limit) return { neighbour: null, end: "ledger" };
    from = leases.at(-1) as LedgerEntry;
    looked += limit;
    step = Math.min(2 * step, STEP_MAX);
    // A store within this process answers without a pause: requests that wait meanwhile come first.
    await turn();
  }
  return { neighbour: null, end: "bound" };
}

function isSameProcess(one: Holder, other: Holder): boolean {
  return one.name === other.name && one.host === other.host && one.pid === other.pid;
}

function inWords({ neighbour, end }: Side, side: "before" | "after"): string {
  return neighbour === null ? ENDS[end](side) : `${runsInWords(neighbour)} ${side} it`;
}

function runsInWords({ firstRun, runCount }: LedgerEntry): string {
  return runCount === 1 ? `run ${firstRun}` : `runs ${firstRun}-${firstRun + runCount - 1}`;
}
