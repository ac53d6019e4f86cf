/**
 * The tables of the embedded store: namespaces with their records, and the ledger, a row for each lease, its holder once
 * for many leases. However many steps of one transaction change a record, it is written once, before the commit; until then each step
 * reads what the step before it has left. Reads and writes within the caller's transaction.
 */
import type { Progress } from "@callnumber/protocol/api";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import type { DatabaseSyncInstance, StatementSyncInstance } from "@photostructure/sqlite";
import {
  type NamespaceState,
  type ObservedFields,
  RECORD_FIELDS,
  type StoredFields,
  storedFields,
} from "../../guard/record.js";
import { lastLedgerIdOf } from "../../ledger/lease-identity.js";
import { type LeaseQuery, type LedgerTrim, NO_RETENTION, type Retention } from "../store.js";
import { hasRecord, holderJsonOf, ledgerEntriesOf, type StoredLease } from "../stored-shapes.js";
import { preparedAll } from "./transactions.js";

/** All fields are null while the ledger is imported from another store: the record comes last. */
type NamespaceRow = { readonly [K in keyof StoredFields]: string | null } & {
  readonly id: number;
  readonly name: string;
};

/** A namespace as the current transaction has left it, or as it is in the file. */
export interface StoredNamespace {
  readonly id: number;
  /** Empty when it has no record. */
  readonly fields: ObservedFields;
}

const KEPT_COLUMNS = [...RECORD_FIELDS, "k"] as const;

const RECORD_STATEMENTS = {
  namespace: "SELECT * FROM namespaces WHERE name = ?",
  namespaces: "SELECT * FROM namespaces ORDER BY name",
  addName: "INSERT INTO namespaces (name) VALUES (?)",
  write: `UPDATE namespaces SET ${KEPT_COLUMNS.map((name) => `${name} = ?`).join(", ")} WHERE id = ?`,
} as const;

export class SqliteNamespaces {
  readonly #statements: Record<keyof typeof RECORD_STATEMENTS, StatementSyncInstance>;
  /** Records that the current transaction has changed, and that are not written yet. */
  readonly #saved = new Map<string, { readonly id: number; readonly fields: StoredFields }>();

  constructor(database: DatabaseSyncInstance) {
    this.#statements = preparedAll(database, RECORD_STATEMENTS);
  }

  /** The records in the file, by name. */
  all(): ReadonlyMap<string, ObservedFields> {
    const rows = this.#statements.namespaces.all() as unknown as NamespaceRow[];
    return new Map(rows.map((row) => [row.name, foundFields(row)] as const).filter(([, fields]) => hasRecord(fields)));
  }

  /** Whether or not it has a record. */
  ifThere(namespace: string): StoredNamespace | undefined {
    const saved = this.#saved.get(namespace);
    if (saved !== undefined) return saved;
    const row = this.#statements.namespace.get(namespace) as unknown as NamespaceRow | undefined;
    return row && { id: row.id, fields: foundFields(row) };
  }

  /** The id of a namespace that need not have a record. */
  idOf(namespace: string): number {
    const known = this.ifThere(namespace);
    if (known !== undefined) return known.id;
    return Number(this.#statements.addName.run(namespace).lastInsertRowid);
  }

  /** Keeps a record for `write`. */
  save(record: NamespaceState): { readonly id: number; readonly fields: StoredFields } {
    const saved = { id: this.idOf(record.namespace), fields: storedFields(record) };
    this.#saved.set(record.namespace, saved);
    return saved;
  }

  /** Before the commit. */
  write(): void {
    for (const { id, fields } of this.#saved.values()) {
      this.#statements.write.run(...KEPT_COLUMNS.map((name) => fields[name]), id);
    }
  }

  /** After a commit or a rollback. */
  forget(): void {
    this.#saved.clear();
  }
}

/** A null column is a missing field. */
function foundFields(row: NamespaceRow): ObservedFields {
  return Object.fromEntries(KEPT_COLUMNS.flatMap((name) => (row[name] === null ? [] : [[name, row[name]]])));
}

const LEASE_COLUMNS = `last_ledger_id AS "lastLedgerId", run_count AS "runCount", leased_at_ms AS "leasedAtMs",
  holders.json AS "holderJson", nonce, progress_run AS run, progress_sequence AS "lastSequence", progress_state AS state,
  progress_at_ms AS "reportedAtMs"
  FROM leases JOIN holders ON holders.id = leases.holder_id`;

/** Their names are read in a millisecond. */
const HOLDERS_PER_STEP = 1_000;

const LEDGER_STATEMENTS = {
  newestId: "SELECT max(last_ledger_id) AS id FROM leases WHERE namespace_id = ?",
  holder: "SELECT id FROM holders WHERE json = ?",
  lookForHolder: `SELECT max(id) AS last, max(json_extract(json, '$.holder.name') = ?) AS found
    FROM (SELECT id, json FROM holders WHERE id > ? ORDER BY id LIMIT ${HOLDERS_PER_STEP})`,
  addHolder: "INSERT INTO holders (json) VALUES (?)",
  add: "INSERT INTO leases (namespace_id, last_ledger_id, run_count, leased_at_ms, holder_id, nonce) VALUES (?, ?, ?, ?, ?, ?)",
  oldest: `SELECT ${LEASE_COLUMNS} WHERE namespace_id = ? AND last_ledger_id >= ? ORDER BY last_ledger_id LIMIT ?`,
  newest: `SELECT ${LEASE_COLUMNS} WHERE namespace_id = ? AND last_ledger_id <= ? ORDER BY last_ledger_id DESC LIMIT ?`,
  since: `SELECT ${LEASE_COLUMNS} WHERE namespace_id = ? AND leased_at_ms >= ? ORDER BY leased_at_ms, last_ledger_id LIMIT ?`,
  setProgress: `UPDATE leases SET progress_run = ?, progress_sequence = ?, progress_state = ?, progress_at_ms = ?
    WHERE namespace_id = ? AND last_ledger_id = ?`,
  retention: `SELECT days, through, leased_at_ms AS "leasedAtMs" FROM retention WHERE namespace_id = ?`,
  setDays: "INSERT INTO retention (namespace_id, days) VALUES (?, ?) ON CONFLICT DO UPDATE SET days = excluded.days",
  setTrimmed: `INSERT INTO retention (namespace_id, through, leased_at_ms) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET through = excluded.through, leased_at_ms = excluded.leased_at_ms`,
  removeUpTo: "DELETE FROM leases WHERE namespace_id = ? AND last_ledger_id <= ?",
} as const;

type NewLease = Omit<StoredLease, "progress">;
/** The columns of the progress are null until the first report. */
type LeaseRow = NewLease & { readonly [K in keyof Progress]: Progress[K] | null };

export class SqliteLedger {
  readonly #statements: Record<keyof typeof LEDGER_STATEMENTS, StatementSyncInstance>;

  constructor(database: DatabaseSyncInstance) {
    this.#statements = preparedAll(database, LEDGER_STATEMENTS);
  }

  /** Ledger id of the newest entry; 0 for none. */
  newestId(namespaceId: number): number {
    const { id } = this.#statements.newestId.get(namespaceId) as { id: number | null };
    return id ?? 0;
  }

  /** Adds an entry, with its progress. */
  add(namespaceId: number, entry: LedgerEntry): void {
    const { runCount, leasedAtMs, nonce, progress } = entry;
    const lastLedgerId = lastLedgerIdOf(entry);
    const holderId = this.#holderId(holderJsonOf(entry));
    this.#statements.add.run(namespaceId, lastLedgerId, runCount, leasedAtMs, holderId, nonce);
    if (progress !== null) this.setProgress(namespaceId, lastLedgerId, progress);
  }

  /** The lease whose last run has this ledger id. */
  entryAt(namespaceId: number, ledgerId: number): LedgerEntry | undefined {
    const [entry] = this.entries(namespaceId, { from: ledgerId, direction: "oldest_first", limit: 1 });
    return entry !== undefined && lastLedgerIdOf(entry) === ledgerId ? entry : undefined;
  }

  entries(namespaceId: number, { from, sinceMs, direction, limit }: LeaseQuery): readonly LedgerEntry[] {
    const { oldest, newest, since } = this.#statements;
    const rows =
      sinceMs !== undefined
        ? since.all(namespaceId, sinceMs, limit)
        : direction === "oldest_first"
          ? oldest.all(namespaceId, from ?? 0, limit)
          : newest.all(namespaceId, from ?? Number.MAX_SAFE_INTEGER, limit);
    return ledgerEntriesOf((rows as unknown as LeaseRow[]).map(storedLease));
  }

  /** Among the next holders after an id. `last`: the id to go on from; undefined for no more. */
  lookForHolder(name: string, after: number): { readonly last: number | undefined; readonly isFound: boolean } {
    const { last, found } = this.#statements.lookForHolder.get(name, after) as Record<"last" | "found", number | null>;
    return { last: last ?? undefined, isFound: found === 1 };
  }

  setProgress(namespaceId: number, lastLedgerId: number, { run, lastSequence, state, reportedAtMs }: Progress): void {
    this.#statements.setProgress.run(run, lastSequence, state, reportedAtMs, namespaceId, lastLedgerId);
  }

  retention(namespaceId: number): Retention {
    const row = this.#statements.retention.get(namespaceId) as unknown as Retention | undefined;
    return row === undefined ? NO_RETENTION : { ...row };
  }

  setRetention(namespaceId: number, days: number): void {
    this.#statements.setDays.run(namespaceId, days);
  }

  trim(namespaceId: number, { through, leasedAtMs }: LedgerTrim): void {
    this.#statements.setTrimmed.run(namespaceId, through, leasedAtMs);
    this.#statements.removeUpTo.run(namespaceId, through);
  }

  #holderId(json: string): number | bigint {
    const known = this.#statements.holder.get(json) as { id: number } | undefined;
    return known?.id ?? this.#statements.addHolder.run(json).lastInsertRowid;
  }
}

function storedLease({ run, lastSequence, state, reportedAtMs, ...lease }: LeaseRow): StoredLease {
  const isReported = run !== null && state !== null && reportedAtMs !== null;
  return { ...lease, progress: isReported ? { run, lastSequence, state, reportedAtMs } : null };
}
