/**
 * The smallest correct store, and the reference for the others. It is lost with its process: for tests and trials, never for an
 * archive.
 */
import { randomUUID } from "node:crypto";
import { type Holder, type LedgerEntry, runOfLedgerId } from "@callnumber/protocol/wire";
import { type Bounds, DEFAULT_BOUNDS } from "../guard/bounds.js";
import { decide } from "../guard/decide.js";
import { type StoredFields, storedFields } from "../guard/record.js";
import { isRefusal, namespaceNotFound, notLeased, refused } from "../guard/refusals.js";
import { holdsRun, type LedgerRange, lastLedgerIdOf } from "../ledger/lease-identity.js";
import { decideReport, decideTrim, leasesToAppend } from "./ledger-decisions.js";
import type {
  Finding,
  LeaseQuery,
  LeaseStep,
  LedgerTrim,
  NamespaceRecord,
  NamespaceSettings,
  Outcome,
  RecordAfter,
  ReportCommand,
  SettingsChange,
  StepCommand,
  Store,
} from "./store.js";
import { localOutcome, namespaceRecordIn } from "./stored-shapes.js";

interface KeptLease extends LedgerRange {
  entry: LedgerEntry;
}

interface KeptNamespace {
  /** Undefined while a ledger is imported from another store. */
  fields: StoredFields | undefined;
  /** By rising ledger id. */
  readonly ledger: KeptLease[];
  readonly labels: Holder["labels"];
  readonly retention: NamespaceSettings["retention"];
}

export interface MemoryStoreOptions {
  /** The clock, in milliseconds. */
  readonly now?: () => number;
  readonly bounds?: Bounds;
}

export class MemoryStore implements Store {
  readonly kind = "memory";
  readonly isExclusive = false;
  readonly #namespaces = new Map<string, KeptNamespace>();
  readonly #now: () => number;
  readonly #bounds: Bounds;
  /** A new store for each object. */
  readonly #epoch = `${randomUUID()}:memory:0`;

  constructor({ now = Date.now, bounds = DEFAULT_BOUNDS }: MemoryStoreOptions = {}) {
    this.#now = now;
    this.#bounds = bounds;
  }

  async step(namespace: string, command: StepCommand): Promise<Outcome> {
    const kept = this.#namespaces.get(namespace);
    const nowMs = this.#now();
    const ledgerMark = kept?.ledger.at(-1)?.lastLedgerId ?? 0;
    const situation = {
      namespace,
      keys: {
        record: kept?.fields === undefined ? "none" : "hash",
        fields: kept?.fields ?? {},
        expires: false,
        ledger: ledgerMark === 0 ? "none" : "stream",
        ledgerMark,
        holders: "none",
      },
      server: { timeMs: nowMs, role: "master", epoch: this.#epoch, connectedReplicas: 0 },
      nowMs,
      bounds: this.#bounds,
    } as const;
    const written = decide(situation, command);
    if (isRefusal(written)) throw refused(written.word, written.detail, namespace);
    const { record, runCount } = written;
    const { ledger, ...others } = kept ?? nothingKept();
    this.#namespaces.set(namespace, { ...others, fields: storedFields(record), ledger });
    const outcome = localOutcome(record, command.nonce, runCount, this.#epoch);
    if (command.step === "lease") ledger.push(keptLease(leasedEntry(command, outcome.after, runCount)));
    return outcome;
  }

  async readNamespace(namespace: string): Promise<NamespaceRecord> {
    const { fields } = this.#kept(namespace);
    return namespaceRecordIn(fields, namespace);
  }

  async listNamespaces(): Promise<readonly string[]> {
    return [...this.#namespaces].flatMap(([name, { fields }]) => (fields === undefined ? [] : [name])).sort();
  }

  async report(namespace: string, ledgerId: number, command: ReportCommand): Promise<void> {
    const lease = leaseHolding(this.#kept(namespace).ledger, ledgerId);
    if (lease === undefined) throw notLeased(namespace, ledgerId);
    const { run } = runOfLedgerId(ledgerId);
    const progress = decideReport(lease.entry, run, command, this.#now());
    lease.entry = { ...lease.entry, progress };
  }

  async leases(
    namespace: string,
    { from, sinceMs, direction, limit, withoutRecord = false }: LeaseQuery,
  ): Promise<readonly LedgerEntry[]> {
    const { ledger } = withoutRecord ? (this.#namespaces.get(namespace) ?? nothingKept()) : this.#kept(namespace);
    if (direction === "oldest_first") {
      const begin = firstIndex(ledger, ({ lastLedgerId, entry }) =>
        sinceMs === undefined ? lastLedgerId >= (from ?? 0) : entry.leasedAtMs >= sinceMs,
      );
      return ledger.slice(begin, begin + limit).map(({ entry }) => entry);
    }
    const end = from === undefined ? ledger.length : firstIndex(ledger, ({ lastLedgerId }) => lastLedgerId > from);
    const newest = ledger.slice(Math.max(end - limit, 0), end);
    return newest.reverse().map(({ entry }) => entry);
  }

  async preflight(): Promise<readonly Finding[]> {
    return [
      {
        code: undefined,
        what: "the store is in memory: when this process ends, nobody knows what was leased",
        remedy: "--store sqlite:PATH, or a redis:// URL",
        override: "no-persistence",
        namespaces: undefined,
      },
    ];
  }

  async importLeases(namespace: string, leases: readonly LedgerEntry[]): Promise<void> {
    const kept = this.#namespaces.get(namespace) ?? nothingKept();
    const { fields, ledger } = kept;
    const importing = {
      namespace,
      hasRecord: fields !== undefined,
      newestLedgerId: ledger.at(-1)?.lastLedgerId ?? 0,
      leaseAt: (ledgerId: number) => leaseHolding(ledger, ledgerId)?.entry,
    };
    for (const lease of leasesToAppend(importing, leases)) ledger.push(keptLease(lease));
    if (ledger.length > 0) this.#namespaces.set(namespace, kept);
  }

  async readSettings(namespace: string): Promise<NamespaceSettings> {
    const { labels, retention } = this.#namespaces.get(namespace) ?? nothingKept();
    return { labels, retention };
  }

  async changeSettings(namespace: string, { labels, retentionDays }: SettingsChange): Promise<void> {
    const kept = this.#namespaces.get(namespace) ?? nothingKept();
    const retention = { ...kept.retention, ...(retentionDays !== undefined && { days: retentionDays }) };
    this.#namespaces.set(namespace, { ...kept, labels: labels ?? kept.labels, retention });
  }

  async trimLedger(namespace: string, trim: LedgerTrim): Promise<boolean> {
    const { through, leasedAtMs } = trim;
    const kept = this.#namespaces.get(namespace) ?? nothingKept();
    const { fields, ledger, retention } = kept;
    const end = firstIndex(ledger, ({ lastLedgerId }) => lastLedgerId > through);
    const found = {
      namespace,
      fields,
      trimmedThrough: retention.through,
      newestLedgerId: ledger.at(-1)?.lastLedgerId ?? 0,
      leases: ledger
        .slice(0, end)
        .map(({ lastLedgerId, entry }) => ({ lastLedgerId, reportedAtMs: entry.progress?.reportedAtMs ?? null })),
    };
    if (!decideTrim(found, trim)) return false;
    const trimmed = { ...retention, through, leasedAtMs };
    this.#namespaces.set(namespace, { ...kept, ledger: ledger.slice(end), retention: trimmed });
    return true;
  }

  async close(): Promise<void> {}

  #kept(namespace: string): KeptNamespace & { fields: StoredFields } {
    const { fields, ...kept } = this.#namespaces.get(namespace) ?? nothingKept();
    if (fields === undefined) throw namespaceNotFound(namespace);
    return { ...kept, fields };
  }
}

function leaseHolding(ledger: readonly KeptLease[], ledgerId: number): KeptLease | undefined {
  const lease = ledger[firstIndex(ledger, ({ lastLedgerId }) => lastLedgerId >= ledgerId)];
  return lease !== undefined && holdsRun(lease, ledgerId) ? lease : undefined;
}

function nothingKept(): KeptNamespace {
  return { fields: undefined, ledger: [], labels: {}, retention: { days: 0, through: 0, leasedAtMs: 0 } };
}

function leasedEntry(
  { holder, coordinator, tokenId, leaseNonce: nonce }: LeaseStep,
  { version, highWaterMark, changedAtMs: leasedAtMs }: RecordAfter,
  runCount: number,
): LedgerEntry {
  const firstRun = highWaterMark - runCount + 1;
  const grantee = tokenId === undefined ? { holder, coordinator } : { holder, coordinator, tokenId };
  return { version, firstRun, runCount, leasedAtMs, ...grantee, nonce, progress: null };
}

function keptLease(entry: LedgerEntry): KeptLease {
  return { lastLedgerId: lastLedgerIdOf(entry), runCount: entry.runCount, entry };
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
