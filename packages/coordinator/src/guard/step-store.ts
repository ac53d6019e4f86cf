/**
 * The part of a store that leases: it is read, and changed where it still is as it was read. It knows no rule: `decide.ts` says what to
 * write, and `expected` says on what that rests. All that is compared is compared in the same atomic step as the write.
 * Guarantees: G1 (docs/guarantees.md).
 */
import { ledgerIdOf } from "@callnumber/protocol/api";
import type { Finding, LedgerEntry } from "@callnumber/protocol/schemas";
import type { ObservedKeys, ObservedServer, RisingMark } from "./checks.js";
import type { CheckAnswer, LeaseStep } from "./commands.js";
import type { Written } from "./decide.js";
import { type NamespaceRecord, type NamespaceState, type ObservedFields, RECORD_FIELDS, readRecord } from "./record.js";
import { isRefusal } from "./refusals.js";

export type { Finding };

/** All that a decision depends on, as a store finds it at one moment. */
export interface Observed {
  readonly keys: ObservedKeys;
  readonly server: ObservedServer;
}

/** What a change rests on. Where the store finds anything else, it changes nothing. */
export interface Expected {
  /** Role and epoch of the server, types of the keys and the record are still these; of its replicas there are no more than `replicasMax`. */
  readonly found: Observed;
  readonly replicasMax: number;
  /** The store's clock at the write. */
  readonly timeMinMs: number;
  readonly timeMaxMs: number;
  /** Undefined: nothing has changed. Else other coordinators may have leased: the mark and the time of the record may have risen. */
  readonly rising: RisingMark | undefined;
}

/** A lease to add: above the mark as it is found, and after the ones before it. */
export type LeaseGrant = Pick<LeaseStep, "runCount" | "holder" | "coordinator" | "tokenId" | "leaseNonce">;

/** What to write: the record first, then the ledger entries. */
export interface Change extends Required<Pick<Written, "record" | "movesAside" | "persists" | "acceptsCopy">> {
  /** In their order. Where `Expected.rising`, the record's mark and time are those found, raised. */
  readonly leases: readonly LeaseGrant[];
  /** An entry for runs that a recovery skipped. Only an exclusive store is given one. */
  readonly skipped: LedgerEntry | undefined;
}

/** A change that was made. */
export interface Applied extends Pick<NamespaceState, "highWaterMark" | "changedAtMs"> {
  /** Number of other nodes that have it, of those that were waited for. */
  readonly acknowledgedCount: number;
  /** Undefined where nothing was waited for. */
  readonly check: CheckAnswer | undefined;
  /** The new names of keys that were moved aside. */
  readonly movedAside: readonly string[];
}

export interface CountedNodes {
  readonly namespace: string;
  readonly nodeCount: number;
}

export interface PreflightScope {
  readonly asOperator?: boolean;
  readonly planned?: CountedNodes | undefined;
}

/** The port to what leases. Nothing is ever sent twice. */
export interface StepStore {
  /** As in `status`: `memory`, `sqlite`, `redis`, `postgres`. */
  readonly kind: string;
  /** Whether one process at a time can have it open. */
  readonly isExclusive: boolean;

  /** @throws CoordinatorError `store_unavailable`. */
  read(namespace: string): Promise<Observed>;

  /**
   * Makes a change, atomically and as durably as the store can, if what it rests on still holds. Else changes nothing, and returns what was
   * found in its place. @throws CoordinatorError `store_unavailable`: it is not known whether it was made, and its runs are lost.
   */
  apply(namespace: string, expected: Expected, change: Change): Promise<Applied | Observed>;

  /**
   * Reads the record: `namespaceRecordIn` of what `read` returns.
   * @throws CoordinatorError `namespace_not_found`, `store_corrupt`, `store_schema_unsupported`, `store_id_mismatch`, `store_unavailable`.
   */
  readNamespace(namespace: string): Promise<NamespaceRecord>;

  /** Returns why the epoch is another one than before, for people; undefined where the store does not know. */
  epochCause?(namespace: string): string | undefined;

  /** The names of all namespaces, sorted. */
  listNamespaces(): Promise<readonly string[]>;

  /**
   * Inspects the servers of the store, as far as the user's rights reach: could they lose or repeat what they hold? Changes nothing.
   * `asOperator`: also reads what only an operator's user may. `planned`: what would be found once this namespace counts so many nodes.
   * @throws CoordinatorError `store_unavailable`.
   */
  preflight(options?: PreflightScope): Promise<readonly Finding[]>;

  /** Finishes what is queued and closes files and connections. May be called twice. */
  close(): Promise<void>;
}

export function isApplied(answer: Applied | Observed): answer is Applied {
  return "acknowledgedCount" in answer;
}

/**
 * For a store in this process, within the step that writes: returns the record to write, or undefined where what the change rests on does
 * not hold. lua/apply.lua does the same in Redis.
 */
export function recordToWrite(
  now: Observed,
  expected: Expected,
  { record, leases }: Change,
): NamespaceState | undefined {
  const { found, rising, replicasMax, timeMinMs, timeMaxMs } = expected;
  const { keys, server } = now;
  const isSameServer =
    server.role === found.server.role && server.epoch === found.server.epoch && server.connectedReplicas <= replicasMax;
  const isSamePlace =
    keys.record === found.keys.record &&
    keys.ledger === found.keys.ledger &&
    keys.holders === found.keys.holders &&
    keys.expires === found.keys.expires;
  const isInTime = server.timeMs >= timeMinMs && server.timeMs <= timeMaxMs;
  if (!isSameServer || !isSamePlace || !isInTime) return undefined;
  if (rising === undefined) {
    const isSame = keys.ledgerMark === found.keys.ledgerMark && hasSame(ALL_FIELDS, keys.fields, found.keys.fields);
    return isSame ? record : undefined;
  }
  const before = readRecord(keys.fields, record.namespace);
  if (isRefusal(before) || !hasSame(STILL_FIELDS, keys.fields, found.keys.fields)) return undefined;
  const { highWaterMark: mark, changedAtMs } = before;
  const writtenAtMs = Math.max(server.timeMs, rising.nowMs);
  const ageMs = writtenAtMs - changedAtMs;
  const markId = ledgerIdOf(record.version, mark);
  const highWaterMark = leases.reduce((before, { runCount }) => before + runCount, mark);
  const isFit =
    ageMs >= rising.ageMinMs &&
    ageMs <= rising.ageMaxMs &&
    markId >= rising.markIdMin &&
    (!rising.isLedgerReached || markId >= keys.ledgerMark) &&
    highWaterMark <= rising.highWaterMarkMax;
  return isFit ? { ...record, highWaterMark, changedAtMs: Math.max(changedAtMs, writtenAtMs) } : undefined;
}

const ALL_FIELDS = [...RECORD_FIELDS, "k"] as const;
/** Those that no lease changes. */
const STILL_FIELDS = RECORD_FIELDS.filter((name) => name !== "c" && name !== "t");

function hasSame(names: readonly string[], fields: ObservedFields, others: ObservedFields): boolean {
  return names.every((name) => fields[name] === others[name]);
}
