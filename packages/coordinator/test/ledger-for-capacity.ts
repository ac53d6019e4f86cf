/** A ledger as a list of leases, for what is computed from it: so that each instant can be chosen. */
import type { Holder, Progress } from "@callnumber/protocol/api";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import type { NamespaceRecord } from "../src/guard/record.js";
import { newStoreId } from "../src/guard/store-id.js";
import { lastLedgerIdOf } from "../src/ledger/lease-identity.js";
import { type CapacityLedger } from "../src/status/capacity.js";

export const NOW_MS = 1_800_000_000_000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

interface LeaseShape {
  readonly firstRun?: number;
  readonly runCount?: number;
  readonly version?: number;
  /** How long before now. */
  readonly agoMs?: number;
  readonly holder?: Partial<Holder>;
  readonly progress?: Partial<Progress> | null;
}

export function leaseOf({
  firstRun = 1,
  runCount = 1,
  version = 0,
  agoMs = 0,
  holder,
  progress = null,
}: LeaseShape): LedgerEntry {
  return {
    version,
    firstRun,
    runCount,
    leasedAtMs: NOW_MS - agoMs,
    holder: { name: "importer", host: "h", pid: 1, labels: {}, ...holder },
    coordinator: "c",
    nonce: "a-nonce-of-capacity",
    progress:
      progress === null
        ? null
        : { run: firstRun, lastSequence: null, state: "open", reportedAtMs: NOW_MS - agoMs, ...progress },
  };
}

/** One lease after the other, from run 1 on; the newest comes last. */
export function leasesInARow(shapes: readonly LeaseShape[]): LedgerEntry[] {
  let next = 1;
  return shapes.map((shape) => {
    const lease = leaseOf({ ...shape, firstRun: shape.firstRun ?? next });
    next = lease.firstRun + lease.runCount;
    return lease;
  });
}

export function repeated<T>(count: number, one: T): T[] {
  return Array.from({ length: count }, () => one);
}

/** `leases` by rising run; counts how often it is read. */
export function ledgerOf(leases: readonly LedgerEntry[]): CapacityLedger & { readCount: number } {
  const newestFirst = leases.toReversed();
  return {
    readCount: 0,
    async leases(_, { from: newestId = Number.POSITIVE_INFINITY, sinceMs, limit }) {
      this.readCount++;
      if (sinceMs !== undefined) return leases.filter(({ leasedAtMs }) => leasedAtMs >= sinceMs).slice(0, limit);
      const from = newestFirst.findIndex((lease) => lastLedgerIdOf(lease) <= newestId);
      return from === -1 ? [] : newestFirst.slice(from, from + limit);
    },
  };
}

interface RecordShape {
  readonly highWaterMark: number;
  readonly version?: number;
  readonly firstRun?: number;
  readonly lifeMs?: number;
  readonly rate?: number;
}

export function recordOf({
  highWaterMark,
  version = 0,
  firstRun = 1,
  lifeMs = 30 * DAY_MS,
  rate = 2,
}: RecordShape): NamespaceRecord {
  return {
    namespace: "main",
    storeId: newStoreId({ firstRun, initializedAtMs: NOW_MS - lifeMs, rate }),
    version,
    firstVersion: 0,
    firstRun,
    highWaterMark,
    changedAtMs: NOW_MS,
    generation: 0,
    phase: 0,
    seal: "-",
    nodeCount: 1,
    proofKey: "",
  };
}
