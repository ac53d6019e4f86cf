/**
 * The smallest correct store, and the reference for the others. It is lost with its process: for tests and trials, never for an
 * archive.
 */
import { randomUUID } from "node:crypto";
import { runOfLedgerId } from "@callnumber/protocol/api";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { namespaceRecordIn } from "../guard/checks.js";
import type { NamespaceRecord } from "../guard/record.js";
import { type StoredFields, storedFields } from "../guard/record.js";
import { namespaceNotFound, notLeased } from "../guard/refusals.js";
import {
  type Applied,
  type Change,
  type Expected,
  type Finding,
  type Observed,
  recordToWrite,
} from "../guard/step-store.js";
import { lastLedgerIdOf, leaseHoldsRun } from "../ledger/lease-identity.js";
import { decideReport, decideTrim, leasesToAppend } from "./ledger-decisions.js";
import {
  type LeaseQuery,
  type LedgerTrim,
  NO_RETENTION,
  type ReportCommand,
  type Retention,
  type Store,
} from "./store.js";
import { appliedLocally, entriesOf, observedLocally } from "./stored-shapes.js";

interface KeptNamespace {
  /** Undefined while a ledger is imported from another store. */
  readonly fields: StoredFields | undefined;
  /** By rising ledger id. */
  readonly ledger: LedgerEntry[];
  readonly retention: Retention;
}

export interface MemoryStoreOptions {
  /** The clock, in milliseconds. */
  readonly now?: () => number;
}

export class MemoryStore implements Store {
  readonly kind = "memory";
  readonly isExclusive = false;
  readonly #namespaces = new Map<string, KeptNamespace>();
  readonly #now: () => number;
  /** A new store for each object. */
  readonly #epoch = `${randomUUID()}:memory:0`;

  constructor({ now = Date.now }: MemoryStoreOptions = {}) {
    this.#now = now;
  }

  async read(namespace: string): Promise<Observed> {
    const { fields = {}, ledger } = this.#kept(namespace);
    return observedLocally({ fields, ledgerMark: newestIdIn(ledger), epoch: this.#epoch, timeMs: this.#now() });
  }

  async apply(namespace: string, expected: Expected, change: Change): Promise<Applied | Observed> {
    const kept = this.#kept(namespace);
    const { fields = {}, ledger } = kept;
    const found = observedLocally({ fields, ledgerMark: newestIdIn(ledger), epoch: this.#epoch, timeMs: this.#now() });
    const record = recordToWrite(found, expected, change);
    if (record === undefined) return found;
    this.#namespaces.set(namespace, { ...kept, fields: storedFields(record) });
    ledger.push(...entriesOf(change, record));
    return appliedLocally(record);
  }

  async readNamespace(namespace: string): Promise<NamespaceRecord> {
    return namespaceRecordIn(await this.read(namespace), namespace);
  }

  async listNamespaces(): Promise<readonly string[]> {
    return [...this.#namespaces].flatMap(([name, { fields }]) => (fields === undefined ? [] : [name])).sort();
  }

  async report(namespace: string, ledgerId: number, command: ReportCommand): Promise<void> {
    const { ledger } = this.#recorded(namespace);
    const index = indexOfLease(ledger, ledgerId);
    const lease = ledger[index];
    if (lease === undefined) throw notLeased(namespace, ledgerId);
    const progress = decideReport(lease, runOfLedgerId(ledgerId).run, command, this.#now());
    ledger[index] = { ...lease, progress };
  }

  async leases(
    namespace: string,
    { from, sinceMs, direction, limit, withoutRecord = false }: LeaseQuery,
  ): Promise<readonly LedgerEntry[]> {
    const { ledger } = withoutRecord ? this.#kept(namespace) : this.#recorded(namespace);
    if (direction === "oldest_first") {
      const begin = firstIndex(ledger, (lease) =>
        sinceMs === undefined ? lastLedgerIdOf(lease) >= (from ?? 0) : lease.leasedAtMs >= sinceMs,
      );
      return ledger.slice(begin, begin + limit);
    }
    const end = from === undefined ? ledger.length : firstIndex(ledger, (lease) => lastLedgerIdOf(lease) > from);
    return ledger.slice(Math.max(end - limit, 0), end).reverse();
  }

  async preflight(): Promise<readonly Finding[]> {
    return [
      {
        code: undefined,
        what: "the store is in memory: when this process ends, what was leased is unknown",
        remedy: "--store sqlite:PATH, or a redis:// URL",
        override: "no-persistence",
        namespaces: undefined,
      },
    ];
  }

  async importLeases(namespace: string, leases: readonly LedgerEntry[]): Promise<void> {
    const kept = this.#kept(namespace);
    const { fields, ledger } = kept;
    const importing = {
      namespace,
      hasRecord: fields !== undefined,
      newestLedgerId: newestIdIn(ledger),
      leaseAt: (ledgerId: number) => ledger[indexOfLease(ledger, ledgerId)],
    };
    for (const lease of leasesToAppend(importing, leases)) ledger.push(lease);
    if (ledger.length > 0) this.#namespaces.set(namespace, kept);
  }

  async readRetention(namespace: string): Promise<Retention> {
    return this.#kept(namespace).retention;
  }

  async setRetentionDays(namespace: string, days: number): Promise<void> {
    const kept = this.#kept(namespace);
    this.#namespaces.set(namespace, { ...kept, retention: { ...kept.retention, days } });
  }

  async trimLedger(namespace: string, trim: LedgerTrim): Promise<boolean> {
    const { through, leasedAtMs } = trim;
    const kept = this.#kept(namespace);
    const { fields, ledger, retention } = kept;
    const end = firstIndex(ledger, (lease) => lastLedgerIdOf(lease) > through);
    const leases = ledger
      .slice(0, end)
      .map((lease) => ({ lastLedgerId: lastLedgerIdOf(lease), reportedAtMs: lease.progress?.reportedAtMs ?? null }));
    const found = { namespace, fields, trimmedThrough: retention.through, newestLedgerId: newestIdIn(ledger), leases };
    if (!decideTrim(found, trim)) return false;
    const trimmed = { ...retention, through, leasedAtMs };
    this.#namespaces.set(namespace, { ...kept, ledger: ledger.slice(end), retention: trimmed });
    return true;
  }

  async close(): Promise<void> {}

  #kept(namespace: string): KeptNamespace {
    return this.#namespaces.get(namespace) ?? { fields: undefined, ledger: [], retention: NO_RETENTION };
  }

  /** @throws CoordinatorError `namespace_not_found` when it has no record. */
  #recorded(namespace: string): KeptNamespace & { readonly fields: StoredFields } {
    const { fields, ...kept } = this.#kept(namespace);
    if (fields === undefined) throw namespaceNotFound(namespace);
    return { ...kept, fields };
  }
}

/** Ledger id of the newest lease; 0 for none. */
function newestIdIn(ledger: readonly LedgerEntry[]): number {
  const newest = ledger.at(-1);
  return newest === undefined ? 0 : lastLedgerIdOf(newest);
}

/** Index of the lease that holds a run; -1 for none. */
function indexOfLease(ledger: readonly LedgerEntry[], ledgerId: number): number {
  const index = firstIndex(ledger, (lease) => lastLedgerIdOf(lease) >= ledgerId);
  const lease = ledger[index];
  return lease !== undefined && leaseHoldsRun(lease, ledgerId) ? index : -1;
}

/** Index of the first item that holds, where all later ones hold too; the length when none does. */
function firstIndex<T>(items: readonly T[], holds: (item: T) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(items[middle] as T)) high = middle;
    else low = middle + 1;
  }
  return low;
}
