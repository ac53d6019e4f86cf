/**
 * The leases that the same process got before and after a lease: what an operator looks at next. Knows the store only through
 * `Store`, and looks at a bounded part of the ledger on each side.
 */
import { setImmediate as turn } from "node:timers/promises";
import type { Holder, LeaseNeighbours, LedgerEntry } from "@callnumber/protocol/wire";
import { lastLedgerIdOf } from "./lease-copy.js";
import type { Store } from "./store.js";

/** Leases looked at on each side at the most. */
const NEIGHBOUR_SCAN_MAX = 1_000;
/** At once: leases wait while a store looks at them. */
const SCAN_STEP = 100;

/** One side of a lease. */
interface Side {
  readonly neighbour: LedgerEntry | null;
  /** Whether the ledger ends where the look did. */
  readonly isWhole: boolean;
}

/** A part of the ledger, in the order in which it is looked at, from an entry on. */
type Read = (from: LedgerEntry) => Promise<readonly LedgerEntry[]>;

export async function neighboursOf(store: Store, namespace: string, lease: LedgerEntry): Promise<LeaseNeighbours> {
  const limit = SCAN_STEP;
  const [before, after] = await Promise.all([
    nearest(lease, (from) => store.listLeases(namespace, { belowLedgerId: lastLedgerIdOf(from), limit })),
    nearest(lease, async (from) => {
      const copies = await store.exportLeases(namespace, { afterLedgerId: lastLedgerIdOf(from), limit });
      return copies.map(({ entry }) => entry);
    }),
  ]);
  return {
    previous: before.neighbour,
    next: after.neighbour,
    explanation: `the same process got ${inWords(before, "before")}, and ${inWords(after, "after")}`,
  };
}

async function nearest(lease: LedgerEntry, read: Read): Promise<Side> {
  let from = lease;
  for (let looked = 0; looked < NEIGHBOUR_SCAN_MAX; looked += SCAN_STEP) {
    const entries = await read(from);
    const neighbour = entries.find(({ holder }) => isSameProcess(holder, lease.holder));
    if (neighbour !== undefined) return { neighbour, isWhole: true };
    if (entries.length < SCAN_STEP) return { neighbour: null, isWhole: true };
    from = entries.at(-1) as LedgerEntry;
    // A store within this process answers without a pause: requests that wait meanwhile come first.
    await turn();
  }
  return { neighbour: null, isWhole: false };
}

function isSameProcess(one: Holder, other: Holder): boolean {
  return one.name === other.name && one.host === other.host && one.pid === other.pid;
}

function inWords({ neighbour, isWhole }: Side, side: "before" | "after"): string {
  if (neighbour !== null) return `${runsInWords(neighbour)} ${side} it`;
  const last = NEIGHBOUR_SCAN_MAX.toLocaleString("en-US");
  return isWhole ? `nothing ${side} it` : `none of the ${last} leases ${side} it (farther ones were not looked at)`;
}

function runsInWords({ firstRun, runCount }: LedgerEntry): string {
  return runCount === 1 ? `run ${firstRun}` : `runs ${firstRun}-${firstRun + runCount - 1}`;
}
