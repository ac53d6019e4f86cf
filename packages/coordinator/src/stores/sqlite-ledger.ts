/** The ledger of the embedded store: a row for each lease, its holder once for many. Reads and writes within the caller's transaction. */
import type { LedgerEntry, Progress } from "@callnumber/protocol/wire";
import type { DatabaseSyncInstance, StatementSyncInstance } from "@photostructure/sqlite";
import { holdsRun, type LedgerRange, lastLedgerIdOf } from "../ledger/lease-identity.js";
import type { LedgerTrim, Retention, TrimmableLease } from "../store.js";
import { holderJsonOf, ledgerEntriesOf } from "./ledger-entry.js";
import { preparedAll } from "./sqlite-turns.js";

const LEASE_COLUMNS = `last_ledger_id, run_count, leased_at_ms, holders.json AS holder_json, nonce,
  progress_run, progress_sequence, progress_state, progress_at_ms
  FROM leases JOIN holders ON holders.id = leases.holder_id`;

const STATEMENTS = {
  mark: "SELECT max(last_ledger_id) AS mark FROM leases WHERE namespace_id = ?",
  holder: "SELECT id FROM holders WHERE json = ?",
  addHolder: "INSERT INTO holders (json) VALUES (?)",
  add: "INSERT INTO leases (namespace_id, last_ledger_id, run_count, leased_at_ms, holder_id, nonce) VALUES (?, ?, ?, ?, ?, ?)",
  atOrAfter: `SELECT ${LEASE_COLUMNS} WHERE namespace_id = ? AND last_ledger_id >= ? ORDER BY last_ledger_id LIMIT 1`,
  at: `SELECT ${LEASE_COLUMNS} WHERE namespace_id = ? AND last_ledger_id = ?`,
  after: `SELECT ${LEASE_COLUMNS} WHERE namespace_id = ? AND last_ledger_id > ? ORDER BY last_ledger_id LIMIT ?`,
  below: `SELECT ${LEASE_COLUMNS} WHERE namespace_id = ? AND last_ledger_id < ? ORDER BY last_ledger_id DESC LIMIT ?`,
  since: `SELECT ${LEASE_COLUMNS} WHERE namespace_id = ? AND leased_at_ms >= ? ORDER BY leased_at_ms, last_ledger_id LIMIT 1`,
  setProgress: `UPDATE leases SET progress_run = ?, progress_sequence = ?, progress_state = ?, progress_at_ms = ?
    WHERE namespace_id = ? AND last_ledger_id = ?`,
  retention: `SELECT days, through, leased_at_ms AS "leasedAtMs" FROM retention WHERE namespace_id = ?`,
  setDays: "INSERT INTO retention (namespace_id, days) VALUES (?, ?) ON CONFLICT DO UPDATE SET days = excluded.days",
  setTrimmed: `INSERT INTO retention (namespace_id, through, leased_at_ms) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET through = excluded.through, leased_at_ms = excluded.leased_at_ms`,
  upTo: `SELECT last_ledger_id AS "lastLedgerId", progress_at_ms AS "reportedAtMs" FROM leases
    WHERE namespace_id = ? AND last_ledger_id <= ? ORDER BY last_ledger_id LIMIT ?`,
  removeUpTo: "DELETE FROM leases WHERE namespace_id = ? AND last_ledger_id <= ?",
} as const;

/** All leases stay, and none was trimmed. */
export const NO_RETENTION: Retention = { days: 0, through: 0, leasedAtMs: 0 };

interface LeaseRow {
  readonly last_ledger_id: number;
  readonly run_count: number;
  readonly leased_at_ms: number;
  readonly holder_json: string;
  readonly nonce: string;
  readonly progress_run: number | null;
  readonly progress_sequence: number | null;
  readonly progress_state: Progress["state"] | null;
  readonly progress_at_ms: number | null;
}

/** A lease to write down. */
export interface NewLease extends LedgerRange {
  readonly leasedAtMs: number;
  readonly holderJson: string;
  readonly nonce: string;
}

/** What a report is decided on. */
export interface ReportableLease {
  readonly lastLedgerId: number;
  readonly nonce: string;
  readonly progress: Progress | null;
}

export class SqliteLedger {
  readonly #statements: Record<keyof typeof STATEMENTS, StatementSyncInstance>;

  constructor(database: DatabaseSyncInstance) {
    this.#statements = preparedAll(database, STATEMENTS);
  }

  /** Ledger id of the newest entry; 0 for none. */
  mark(namespaceId: number): number {
    const { mark } = this.#statements.mark.get(namespaceId) as { mark: number | null };
    return mark ?? 0;
  }

  add(namespaceId: number, { lastLedgerId, runCount, leasedAtMs, holderJson, nonce }: NewLease): void {
    this.#statements.add.run(namespaceId, lastLedgerId, runCount, leasedAtMs, this.#holderId(holderJson), nonce);
  }

  /** The entry of the lease that holds a run. */
  entryOf(namespaceId: number, ledgerId: number): LedgerEntry | undefined {
    const row = this.#rowOf(namespaceId, ledgerId);
    return row && entriesOf([row])[0];
  }

  reportable(namespaceId: number, ledgerId: number): ReportableLease | undefined {
    const row = this.#rowOf(namespaceId, ledgerId);
    return row && { lastLedgerId: row.last_ledger_id, nonce: row.nonce, progress: progressOf(row) };
  }

  setProgress(namespaceId: number, lastLedgerId: number, { run, lastSequence, state, reportedAtMs }: Progress): void {
    this.#statements.setProgress.run(run, lastSequence, state, reportedAtMs, namespaceId, lastLedgerId);
  }

  below(namespaceId: number, ledgerId: number, limit: number): readonly LedgerEntry[] {
    const rows = this.#statements.below.all(namespaceId, ledgerId, limit) as unknown as LeaseRow[];
    return entriesOf(rows);
  }

  firstSince(namespaceId: number, timeMs: number): LedgerEntry | undefined {
    const row = this.#statements.since.get(namespaceId, timeMs) as unknown as LeaseRow | undefined;
    return row && entriesOf([row])[0];
  }

  after(namespaceId: number, ledgerId: number, limit: number): readonly LedgerEntry[] {
    const rows = this.#statements.after.all(namespaceId, ledgerId, limit) as unknown as LeaseRow[];
    return entriesOf(rows);
  }

  /** The lease whose last run that is. */
  endingAt(namespaceId: number, lastLedgerId: number): LedgerEntry | undefined {
    const row = this.#statements.at.get(namespaceId, lastLedgerId) as unknown as LeaseRow | undefined;
    return row && entriesOf([row])[0];
  }

  retention(namespaceId: number): Retention {
    const row = this.#statements.retention.get(namespaceId) as unknown as Retention | undefined;
    return row === undefined ? NO_RETENTION : { ...row };
  }

  setRetention(namespaceId: number, days: number): void {
    this.#statements.setDays.run(namespaceId, days);
  }

  /** The oldest leases whose last run lies at a ledger id or below it. */
  upTo(namespaceId: number, ledgerId: number, limit: number): readonly TrimmableLease[] {
    return this.#statements.upTo.all(namespaceId, ledgerId, limit) as unknown as TrimmableLease[];
  }

  trim(namespaceId: number, { through, leasedAtMs }: LedgerTrim): void {
    this.#statements.setTrimmed.run(namespaceId, through, leasedAtMs);
    this.#statements.removeUpTo.run(namespaceId, through);
  }

  /** Writes down a lease of another store, with what was reported on it. */
  addTakenOver(namespaceId: number, lease: LedgerEntry): void {
    const { runCount, leasedAtMs, nonce, progress } = lease;
    const lastLedgerId = lastLedgerIdOf(lease);
    this.add(namespaceId, { lastLedgerId, runCount, leasedAtMs, holderJson: holderJsonOf(lease), nonce });
    if (progress !== null) this.setProgress(namespaceId, lastLedgerId, progress);
  }

  #rowOf(namespaceId: number, ledgerId: number): LeaseRow | undefined {
    const row = this.#statements.atOrAfter.get(namespaceId, ledgerId) as unknown as LeaseRow | undefined;
    return row !== undefined && holdsRun(rangeOf(row), ledgerId) ? row : undefined;
  }

  #holderId(json: string): number | bigint {
    const known = this.#statements.holder.get(json) as { id: number } | undefined;
    return known?.id ?? this.#statements.addHolder.run(json).lastInsertRowid;
  }
}

function entriesOf(rows: readonly LeaseRow[]): readonly LedgerEntry[] {
  return ledgerEntriesOf(
    rows.map((row) => {
      const { leased_at_ms: leasedAtMs, holder_json: holderJson, nonce } = row;
      return { ...rangeOf(row), leasedAtMs, holderJson, nonce, progress: progressOf(row) };
    }),
  );
}

function rangeOf({ last_ledger_id, run_count }: LeaseRow): LedgerRange {
  return { lastLedgerId: last_ledger_id, runCount: run_count };
}

function progressOf({ progress_run, progress_sequence, progress_state, progress_at_ms }: LeaseRow): Progress | null {
  if (progress_run === null || progress_state === null || progress_at_ms === null) return null;
  return { run: progress_run, lastSequence: progress_sequence, state: progress_state, reportedAtMs: progress_at_ms };
}
