/**
 * The embedded store: one SQLite file, one process. All changes of one turn of the event loop share one transaction and
 * one sync of the disk, and none is answered before it.
 */

import { randomUUID } from "node:crypto";
import { type LedgerEntry, ledgerIdOf, type Progress, runOfLedgerId } from "@callnumber/protocol/wire";
import type { DatabaseSyncInstance, StatementSyncInstance } from "@photostructure/sqlite";
import { CoordinatorError } from "../errors.js";
import { type Bounds, DEFAULT_BOUNDS } from "../guard/bounds.js";
import { decide } from "../guard/decisions.js";
import type { FoundKeys } from "../guard/found.js";
import { type FoundFields, type GuardRecord, type KeptFields, keptFields, RECORD_FIELDS } from "../guard/record.js";
import { isRefusal } from "../guard/refusal.js";
import { notInitialised, notLeased, refused } from "../refusals.js";
import type { Finding, LeaseStep, NamespaceRecord, Outcome, ReportCommand, StepCommand, Store } from "../store.js";
import { holderJsonOf, holdsRun, type LedgerRange, ledgerEntryOf } from "./ledger-entry.js";
import { namespaceRecordIn, recordAfter } from "./namespace-record.js";
import { decideReport } from "./report-decision.js";
import { openSqliteFile, type SqliteFile } from "./sqlite-file.js";
import { type JobOutcome, TurnQueue } from "./turn-queue.js";

export interface SqliteStoreOptions {
  readonly path: string;
  /** Whether a new file may be made where there is none. */
  readonly create: boolean;
  /** The clock, in milliseconds. */
  readonly now?: () => number;
  readonly bounds?: Bounds;
}

type NamespaceRow = KeptFields & { readonly id: number };

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

const LEASE_COLUMNS = `last_ledger_id, run_count, leased_at_ms, holders.json AS holder_json, nonce,
  progress_run, progress_sequence, progress_state, progress_at_ms
  FROM leases JOIN holders ON holders.id = leases.holder_id`;

const KEPT_COLUMNS = [...RECORD_FIELDS, "k"] as const;

const STATEMENTS = {
  begin: "BEGIN IMMEDIATE",
  commit: "COMMIT",
  rollback: "ROLLBACK",
  namespace: "SELECT * FROM namespaces WHERE name = ?",
  namespaceNames: "SELECT name FROM namespaces ORDER BY name",
  saveRecord: `INSERT INTO namespaces (name, ${KEPT_COLUMNS.join(", ")}) VALUES (?, ${KEPT_COLUMNS.map(() => "?").join(", ")})
    ON CONFLICT (name) DO UPDATE SET ${KEPT_COLUMNS.map((name) => `${name} = excluded.${name}`).join(", ")}`,
  ledgerMark: "SELECT max(last_ledger_id) AS mark FROM leases WHERE namespace_id = ?",
  holder: "SELECT id FROM holders WHERE json = ?",
  addHolder: "INSERT INTO holders (json) VALUES (?)",
  addLease:
    "INSERT INTO leases (namespace_id, last_ledger_id, run_count, leased_at_ms, holder_id, nonce) VALUES (?, ?, ?, ?, ?, ?)",
  leaseAtOrAfter: `SELECT ${LEASE_COLUMNS} WHERE namespace_id = ? AND last_ledger_id >= ? ORDER BY last_ledger_id LIMIT 1`,
  leasesBelow: `SELECT ${LEASE_COLUMNS} WHERE namespace_id = ? AND last_ledger_id < ? ORDER BY last_ledger_id DESC LIMIT ?`,
  leaseSince: `SELECT ${LEASE_COLUMNS} WHERE namespace_id = ? AND leased_at_ms >= ? ORDER BY leased_at_ms, last_ledger_id LIMIT 1`,
  setProgress: `UPDATE leases SET progress_run = ?, progress_sequence = ?, progress_state = ?, progress_at_ms = ?
    WHERE namespace_id = ? AND last_ledger_id = ?`,
} as const;

export class SqliteStore implements Store {
  readonly kind = "sqlite";
  readonly isExclusive = true;
  /** Absolute path of the file. */
  readonly path: string;
  /** Whether the file was made when this store was opened. */
  readonly isNew: boolean;

  readonly #file: SqliteFile;
  readonly #now: () => number;
  readonly #bounds: Bounds;
  readonly #epoch = `${randomUUID()}:embedded:0`;
  readonly #statements: Record<keyof typeof STATEMENTS, StatementSyncInstance>;
  readonly #queue = new TurnQueue((jobs) => this.#inOneTransaction(jobs));
  #failure: CoordinatorError | undefined;
  #isClosed = false;

  /** @throws CoordinatorError as `openSqliteFile`. */
  constructor({ path, create, now = Date.now, bounds = DEFAULT_BOUNDS }: SqliteStoreOptions) {
    this.#file = openSqliteFile(path, { create });
    this.path = this.#file.path;
    this.isNew = this.#file.isNew;
    this.#now = now;
    this.#bounds = bounds;
    this.#statements = prepareAll(this.#file.database);
  }

  step(namespace: string, command: StepCommand): Promise<Outcome> {
    return this.#queue.add(() => {
      const row = this.#statements.namespace.get(namespace) as unknown as NamespaceRow | undefined;
      const nowMs = this.#now();
      const server = { timeMs: nowMs, role: "master", epoch: this.#epoch, connectedReplicas: 0 };
      const written = decide({ namespace, keys: this.#found(row), server, nowMs, bounds: this.#bounds }, command);
      if (isRefusal(written)) throw refused(written.word, written.detail, namespace);
      const { record, runCount } = written;
      const namespaceId = this.#save(record);
      const after = recordAfter(record, command.nonce);
      if (command.step === "lease") this.#addLease(namespaceId, record, runCount, command);
      const { nonce, epoch, generation } = after;
      return { after, runCount, acknowledgedCount: 0, check: { nonce, role: "master", epoch, generation } };
    });
  }

  async readNamespace(namespace: string): Promise<NamespaceRecord> {
    return namespaceRecordIn(foundFields(this.#row(namespace)), namespace);
  }

  async listNamespaces(): Promise<readonly string[]> {
    this.#mustWork();
    return this.#statements.namespaceNames.all().map((row) => (row as { name: string }).name);
  }

  report(namespace: string, ledgerId: number, command: ReportCommand): Promise<void> {
    return this.#queue.add(() => {
      const { id } = this.#row(namespace);
      const lease = this.#leaseAt(id, ledgerId);
      if (lease === undefined) throw notLeased(namespace, ledgerId);
      const known = { nonce: lease.nonce, progress: progressOf(lease) };
      const { run, lastSequence, state, reportedAtMs } = decideReport(
        known,
        runOfLedgerId(ledgerId).run,
        command,
        this.#now(),
      );
      this.#statements.setProgress.run(run, lastSequence, state, reportedAtMs, id, lease.last_ledger_id);
    });
  }

  async findLease(namespace: string, ledgerId: number): Promise<LedgerEntry | undefined> {
    const lease = this.#leaseAt(this.#row(namespace).id, ledgerId);
    return lease && entryOf(lease);
  }

  async listLeases(
    namespace: string,
    { belowLedgerId, limit }: { readonly belowLedgerId: number; readonly limit: number },
  ): Promise<readonly LedgerEntry[]> {
    const { id } = this.#row(namespace);
    return this.#statements.leasesBelow.all(id, belowLedgerId, limit).map((row) => entryOf(row as unknown as LeaseRow));
  }

  async firstLeaseSince(namespace: string, timeMs: number): Promise<LedgerEntry | undefined> {
    const { id } = this.#row(namespace);
    const row = this.#statements.leaseSince.get(id, timeMs) as unknown as LeaseRow | undefined;
    return row && entryOf(row);
  }

  /** The file was looked at when it was opened, and its settings are this process's own. */
  async preflight(): Promise<readonly Finding[]> {
    this.#mustWork();
    return [];
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#queue.flush();
    this.#isClosed = true;
    this.#file.close();
  }

  /** Refusals fail their own job, before it has written anything; everything else fails the whole turn, and the store. */
  #inOneTransaction(jobs: readonly (() => unknown)[]): JobOutcome<unknown>[] {
    this.#mustWork();
    this.#mustBeAlone();
    this.#begin();
    try {
      const outcomes = jobs.map(outcomeOf);
      this.#statements.commit.run();
      return outcomes;
    } catch (error) {
      this.#rollBack();
      if (!isOfSqlite(error)) throw error;
      this.#failure = failed(this.path, error);
      throw this.#failure;
    }
  }

  #mustBeAlone(): void {
    if (this.#file.isLocked()) return;
    this.#failure = new CoordinatorError(
      "store_locked",
      `the lock file of the store ${this.path} was removed or replaced, so another coordinator may have the store open; ` +
        "this one leases no more. See that there is one only, then start it again",
    );
    throw this.#failure;
  }

  /** Nothing is written yet: whatever stands in the way may pass. */
  #begin(): void {
    try {
      this.#statements.begin.run();
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new CoordinatorError(
        "store_unavailable",
        `the store ${this.path} is busy (${reason}); does another program use the file?`,
        {
          cause,
        },
      );
    }
  }

  #rollBack(): void {
    try {
      this.#statements.rollback.run();
    } catch {
      // SQLite has rolled back by itself, or can't; nothing of this turn was answered either way.
    }
  }

  /**
   * After a failed write or sync nobody knows what is on the disk, and a later sync that succeeds proves nothing. So this
   * process stops leasing; the next one reads what the file really holds.
   */
  #mustWork(): void {
    if (this.#isClosed) throw new CoordinatorError("store_unavailable", `the store ${this.path} is closed`);
    if (this.#failure) throw this.#failure;
  }

  #row(namespace: string): NamespaceRow {
    this.#mustWork();
    const row = this.#statements.namespace.get(namespace) as unknown as NamespaceRow | undefined;
    if (row === undefined) throw notInitialised(namespace);
    return row;
  }

  #leaseAt(namespaceId: number, ledgerId: number): LeaseRow | undefined {
    const row = this.#statements.leaseAtOrAfter.get(namespaceId, ledgerId) as unknown as LeaseRow | undefined;
    return row !== undefined && holdsRun(rangeOf(row), ledgerId) ? row : undefined;
  }

  #found(row: NamespaceRow | undefined): FoundKeys {
    if (row === undefined) {
      return { record: "none", fields: {}, expires: false, ledger: "none", ledgerMark: 0, holders: "hash" };
    }
    const { mark } = this.#statements.ledgerMark.get(row.id) as { mark: number | null };
    return {
      record: "hash",
      fields: foundFields(row),
      expires: false,
      ledger: "stream",
      ledgerMark: mark ?? 0,
      holders: "hash",
    };
  }

  #save(record: GuardRecord): number | bigint {
    const fields = keptFields(record);
    this.#statements.saveRecord.run(record.namespace, ...KEPT_COLUMNS.map((name) => fields[name]));
    return (this.#statements.namespace.get(record.namespace) as { id: number }).id;
  }

  #addLease(namespaceId: number | bigint, record: GuardRecord, runCount: number, command: LeaseStep): void {
    const { version, mark, changedAtMs } = record;
    const lastLedgerId = ledgerIdOf(version, mark);
    this.#statements.addLease.run(
      namespaceId,
      lastLedgerId,
      runCount,
      changedAtMs,
      this.#holderId(command),
      command.leaseNonce,
    );
  }

  #holderId(command: LeaseStep): number | bigint {
    const json = holderJsonOf(command);
    const known = this.#statements.holder.get(json) as { id: number } | undefined;
    return known?.id ?? this.#statements.addHolder.run(json).lastInsertRowid;
  }
}

function isOfSqlite(error: unknown): boolean {
  return error instanceof Error && (error as { code?: unknown }).code === "ERR_SQLITE_ERROR";
}

function outcomeOf(job: () => unknown): JobOutcome<unknown> {
  try {
    return { value: job() };
  } catch (error) {
    if (error instanceof CoordinatorError) return { error };
    throw error;
  }
}

function prepareAll(database: DatabaseSyncInstance): Record<keyof typeof STATEMENTS, StatementSyncInstance> {
  const entries = Object.entries(STATEMENTS).map(([name, sql]) => [name, database.prepare(sql)]);
  return Object.fromEntries(entries) as Record<keyof typeof STATEMENTS, StatementSyncInstance>;
}

/** A column that is empty is a field that is missing. */
function foundFields(row: NamespaceRow): FoundFields {
  return Object.fromEntries(KEPT_COLUMNS.flatMap((name) => (row[name] === null ? [] : [[name, row[name]]])));
}

function entryOf(row: LeaseRow): LedgerEntry {
  const { leased_at_ms: leasedAtMs, holder_json: holderJson } = row;
  return ledgerEntryOf({ ...rangeOf(row), leasedAtMs, holderJson, progress: progressOf(row) });
}

function rangeOf({ last_ledger_id, run_count }: LeaseRow): LedgerRange {
  return { lastLedgerId: last_ledger_id, runCount: run_count };
}

function progressOf({ progress_run, progress_sequence, progress_state, progress_at_ms }: LeaseRow): Progress | null {
  if (progress_run === null || progress_state === null || progress_at_ms === null) return null;
  return { run: progress_run, lastSequence: progress_sequence, state: progress_state, reportedAtMs: progress_at_ms };
}

function failed(path: string, cause: unknown): CoordinatorError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new CoordinatorError(
    "store_unavailable",
    `the store ${path} could not be written (${reason}); this coordinator leases no more. Mend the disk, then start it again`,
    { cause },
  );
}
