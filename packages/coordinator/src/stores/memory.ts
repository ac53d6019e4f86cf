/**
 * The smallest correct store, and the reference for the others. It is lost with its process: for tests and trials, never for an
 * archive.
 */
import { randomUUID } from "node:crypto";
import type { Progress } from "@callnumber/protocol/api";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { namespaceRecordIn } from "../guard/checks.js";
import type { NamespaceRecord } from "../guard/record.js";
import { type StoredFields, storedFields } from "../guard/record.js";
import {
  type Applied,
  type Change,
  type Expected,
  type Finding,
  type Observed,
  recordToWrite,
} from "../guard/step-store.js";
import { isSameProgress, lastLedgerIdOf } from "../ledger/lease-identity.js";
import { type LeaseQuery, type LedgerTrim, NO_RETENTION, type Retention, type Store } from "./store.js";
import { appliedLocally, entriesOf, isAsTrimExpects, observedLocally } from "./stored-shapes.js";

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

  async setProgress(namespace: string, lease: LedgerEntry, progress: Progress): Promise<boolean> {
    const { ledger } = this.#kept(namespace);
    const index = indexFrom(ledger, lastLedgerIdOf(lease));
    const held = ledger[index];
    if (held === undefined || lastLedgerIdOf(held) !== lastLedgerIdOf(lease)) return false;
    if (!isSameProgress(held.progress, lease.progress)) return false;
    ledger[index] = { ...held, progress };
    return true;
  }

  async hasHolder(namespace: string, name: string): Promise<boolean> {
    return this.#kept(namespace).ledger.some(({ holder }) => holder.name === name);
  }

  async leases(namespace: string, { from, sinceMs, direction, limit }: LeaseQuery): Promise<readonly LedgerEntry[]> {
    const { ledger } = this.#kept(namespace);
    if (direction === "oldest_first") {
      const begin =
        sinceMs === undefined
          ? indexFrom(ledger, from ?? 0)
          : firstIndex(ledger, ({ leasedAtMs }) => leasedAtMs >= sinceMs);
      return ledger.slice(begin, begin + limit);
    }
    const end = from === undefined ? ledger.length : indexFrom(ledger, from + 1);
    return ledger.slice(Math.max(end - limit, 0), end).reverse();
  }

  async preflight(): Promise<readonly Finding[]> {
    return [
      {
        code: undefined,
        what: "the store is in memory: when this process ends, what was leased is unknown",
        remedy: "--store sqlite:PATH, or the URL of a server",
        override: "no-persistence",
        namespaces: undefined,
      },
    ];
  }

  async appendLeases(namespace: string, newestLedgerId: number, leases: readonly LedgerEntry[]): Promise<boolean> {
    const kept = this.#kept(namespace);
    if (kept.fields !== undefined || newestIdIn(kept.ledger) !== newestLedgerId) return false;
    this.#namespaces.set(namespace, { ...kept, ledger: [...kept.ledger, ...leases] });
    return true;
  }

  async readRetention(namespace: string): Promise<Retention> {
    return this.#kept(namespace).retention;
  }

  async setRetentionDays(namespace: string, days: number): Promise<void> {
    const kept = this.#kept(namespace);
    this.#namespaces.set(namespace, { ...kept, retention: { ...kept.retention, days } });
  }

  async trimLedger(namespace: string, trim: LedgerTrim): Promise<boolean> {
    const { through, leasedAtMs, leases } = trim;
    const kept = this.#kept(namespace);
    const { fields = {}, ledger, retention } = kept;
    if (!isAsTrimExpects(trim, { fields, through: retention.through, oldest: ledger })) return false;
    const trimmed = { ...retention, through, leasedAtMs };
    this.#namespaces.set(namespace, { ...kept, ledger: ledger.slice(leases.length), retention: trimmed });
    return true;
  }

  async close(): Promise<void> {}

  #kept(namespace: string): KeptNamespace {
    return this.#namespaces.get(namespace) ?? { fields: undefined, ledger: [], retention: NO_RETENTION };
  }
}

/** Ledger id of the newest lease; 0 for none. */
function newestIdIn(ledger: readonly LedgerEntry[]): number {
  const newest = ledger.at(-1);
  return newest === undefined ? 0 : lastLedgerIdOf(newest);
}

/** Index of the first lease at a ledger id or above it; the length when there is none. */
function indexFrom(ledger: readonly LedgerEntry[], ledgerId: number): number {
  return firstIndex(ledger, (lease) => lastLedgerIdOf(lease) >= ledgerId);
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
