/**
 * The leases that the same process got before and after a lease: what an operator asks for next. Reads a bounded part of the ledger on each
 * side. Knows the ledger only as a port.
 */
import { formatCount, type Holder, runsName } from "@callnumber/protocol/api";
import type { LeaseNeighbors, LedgerEntry } from "@callnumber/protocol/schemas";
import { lastLedgerIdOf } from "../ledger/lease-identity.js";
import { leasesInSteps } from "../ledger/read-ledger.js";
import type { LeaseQuery, LedgerReader } from "../stores/store.js";

/** The most leases that are read on each side. */
const NEIGHBOR_SCAN_MAX = 1_000;

/** The nearest lease of the same process; or null, and whether all leases were read. */
interface Side {
  readonly neighbor: LedgerEntry | null;
  readonly isComplete: boolean;
}

export async function neighborsOf(
  ledger: LedgerReader,
  namespace: string,
  lease: LedgerEntry,
  currentVersion: number,
): Promise<LeaseNeighbors> {
  const side = (direction: LeaseQuery["direction"]) => nearest(ledger, namespace, lease, direction);
  const [before, after] = await Promise.all([side("newest_first"), side("oldest_first")]);
  return {
    previous: before.neighbor,
    next: after.neighbor,
    explanation: `the same process got ${formatSide(before, "before", currentVersion)}, and ${formatSide(after, "after", currentVersion)}`,
  };
}

async function nearest(
  ledger: LedgerReader,
  namespace: string,
  lease: LedgerEntry,
  direction: LeaseQuery["direction"],
): Promise<Side> {
  const from = lastLedgerIdOf(lease) + (direction === "oldest_first" ? 1 : -1);
  let readCount = 0;
  for await (const leases of leasesInSteps(ledger, namespace, { from, direction })) {
    const neighbor = leases.find(({ holder }) => isSameProcess(holder, lease.holder));
    if (neighbor !== undefined) return { neighbor, isComplete: true };
    readCount += leases.length;
    if (readCount >= NEIGHBOR_SCAN_MAX) return { neighbor: null, isComplete: false };
  }
  return { neighbor: null, isComplete: true };
}

function isSameProcess(one: Holder, other: Holder): boolean {
  return one.name === other.name && one.host === other.host && one.pid === other.pid;
}

function formatSide({ neighbor, isComplete }: Side, side: "before" | "after", currentVersion: number): string {
  if (neighbor !== null)
    return `${neighbor.runCount === 1 ? "run" : "runs"} ${runsName(neighbor, currentVersion)} ${side} it`;
  if (isComplete) return `nothing ${side} it`;
  return `none of the ${formatCount(NEIGHBOR_SCAN_MAX)} leases ${side} it (farther ones were not read)`;
}
