/**
 * The smallest correct store, and the reference for the others. Forgets everything with its process: for tests, and for
 * trying things out, never for an archive.
 */
import { type LedgerEntry, ledgerIdOf, runOfLedgerId } from "@callnumber/protocol/wire";
import { alreadyInitialised, notInitialised, notLeased } from "../refusals.js";
import type { GrantedRuns, LeaseCommand, NamespaceRecord, ReportCommand, Store } from "../store.js";
import { decideLease, decideReport } from "./decisions.js";
import { holdsRun, type LedgerRange } from "./ledger-entry.js";
import { newRecord } from "./namespace-record.js";

interface KeptLease extends LedgerRange {
  readonly nonce: string;
  entry: LedgerEntry;
}

interface KeptNamespace {
  record: NamespaceRecord;
  /** By rising ledger id. */
  readonly ledger: KeptLease[];
}

export class MemoryStore implements Store {
  readonly kind = "memory";
  readonly #namespaces = new Map<string, KeptNamespace>();
  readonly #now: () => number;

  /** `now` is the clock, in milliseconds. */
  constructor({ now = Date.now }: { readonly now?: () => number } = {}) {
    this.#now = now;
  }

  async createNamespace(namespace: string, storeId: string): Promise<NamespaceRecord> {
    if (this.#namespaces.has(namespace)) throw alreadyInitialised(namespace);
    const record = newRecord(namespace, storeId);
    this.#namespaces.set(namespace, { record, ledger: [] });
    return record;
  }

  async readNamespace(namespace: string): Promise<NamespaceRecord> {
    return this.#kept(namespace).record;
  }

  async listNamespaces(): Promise<readonly string[]> {
    return [...this.#namespaces.keys()].sort();
  }

  async lease(namespace: string, command: LeaseCommand): Promise<GrantedRuns> {
    const kept = this.#kept(namespace);
    const granted = decideLease(kept.record, command, this.#now());
    const { version, firstRun, runCount, leasedAtMs } = granted;
    const { holder, coordinator, nonce } = command;
    const lastRun = firstRun + runCount - 1;
    kept.record = { ...kept.record, highWaterMark: lastRun, changedAtMs: leasedAtMs };
    const entry = { version, firstRun, runCount, leasedAtMs, holder, coordinator, progress: null };
    kept.ledger.push({ lastLedgerId: ledgerIdOf(version, lastRun), runCount, nonce, entry });
    return granted;
  }

  async report(namespace: string, ledgerId: number, command: ReportCommand): Promise<void> {
    const lease = this.#leaseAt(namespace, ledgerId);
    if (lease === undefined) throw notLeased(namespace, ledgerId);
    const { run } = runOfLedgerId(ledgerId);
    const progress = decideReport({ nonce: lease.nonce, progress: lease.entry.progress }, run, command, this.#now());
    lease.entry = { ...lease.entry, progress };
  }

  async findLease(namespace: string, ledgerId: number): Promise<LedgerEntry | undefined> {
    return this.#leaseAt(namespace, ledgerId)?.entry;
  }

  async listLeases(
    namespace: string,
    { belowLedgerId, limit }: { readonly belowLedgerId: number; readonly limit: number },
  ): Promise<readonly LedgerEntry[]> {
    const { ledger } = this.#kept(namespace);
    const end = firstIndex(ledger, (lease) => lease.lastLedgerId >= belowLedgerId);
    return ledger
      .slice(Math.max(end - limit, 0), end)
      .reverse()
      .map(({ entry }) => entry);
  }

  async firstLeaseSince(namespace: string, timeMs: number): Promise<LedgerEntry | undefined> {
    const { ledger } = this.#kept(namespace);
    return ledger[firstIndex(ledger, ({ entry }) => entry.leasedAtMs >= timeMs)]?.entry;
  }

  async close(): Promise<void> {}

  #kept(namespace: string): KeptNamespace {
    const kept = this.#namespaces.get(namespace);
    if (kept === undefined) throw notInitialised(namespace);
    return kept;
  }

  #leaseAt(namespace: string, ledgerId: number): KeptLease | undefined {
    const { ledger } = this.#kept(namespace);
    const lease = ledger[firstIndex(ledger, ({ lastLedgerId }) => lastLedgerId >= ledgerId)];
    return lease !== undefined && holdsRun(lease, ledgerId) ? lease : undefined;
  }
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
