/**
 * The embedded store: one SQLite file, one process. All changes of one turn of the event loop share one transaction and
 * one sync of the disk, and none is answered before it.
 */

import { setImmediate as turn } from "node:timers/promises";
import type { Progress } from "@callnumber/protocol/api";
import { commandLine } from "@callnumber/protocol/api";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import type { CoordinatorError } from "../../errors.js";
import { namespaceRecordIn } from "../../guard/checks.js";
import { EPS_MS } from "../../guard/clocks.js";
import type { NamespaceRecord } from "../../guard/record.js";
import type { Restart } from "../../guard/restart-decision.js";
import {
  type Applied,
  type Change,
  type Expected,
  type Finding,
  type Observed,
  recordToWrite,
} from "../../guard/step-store.js";
import { isSameProgress, lastLedgerIdOf } from "../../ledger/lease-identity.js";
import { type LeaseQuery, type LedgerTrim, NO_RETENTION, type Retention, type Store } from "../store.js";
import { appliedLocally, entriesOf, hasRecord, isAsTrimExpects, observedLocally } from "../stored-shapes.js";
import { unusable } from "./errors.js";
import { openSqliteFile, type SqliteFile, type SqliteFileOptions } from "./file.js";
import { fileModeOf } from "./file-checks.js";
import { keepIdentity } from "./file-identity.js";
import { sqliteFindings } from "./findings.js";
import { type Machine, thisMachine } from "./machine.js";
import { RestartDetection } from "./restart-detection.js";
import { RestartMarker } from "./restart-marker.js";
import { SqliteLedger, SqliteNamespaces, type StoredNamespace } from "./tables.js";
import { SqliteTransactions } from "./transactions.js";

export interface SqliteStoreOptions extends Omit<SqliteFileOptions, "machine"> {
  readonly path: string;
  /** The clock, in milliseconds. One that is given is taken to run evenly: its leaps are not looked for. */
  readonly now?: () => number;
  /** How far two clocks may differ, ms. Default: that of the guard. */
  readonly epsMs?: number;
  /** Tests replace parts of it. */
  readonly machine?: Partial<Machine>;
}

const NOTHING_STORED = { id: undefined, fields: {} } as const;

export class SqliteStore implements Store {
  readonly kind = "sqlite";
  readonly isExclusive = true;
  /** Absolute path of the file. */
  readonly path: string;
  /** Whether the file was made when this store was opened. */
  readonly isNew: boolean;

  readonly #file: SqliteFile;
  readonly #now: () => number;
  readonly #namespaces: SqliteNamespaces;
  readonly #ledger: SqliteLedger;
  readonly #restart: RestartDetection;
  readonly #transactions: SqliteTransactions;
  /** Why nothing but `recover` and the seal of a move is done; undefined once the file is the one that the store was made in. */
  #copyFault: CoordinatorError | undefined;
  /** A step in the current transaction has made this file the store's. */
  #hasAcceptedCopy = false;

  /** @throws CoordinatorError as `openSqliteFile`. */
  constructor(options: SqliteStoreOptions) {
    const { path, now, epsMs = EPS_MS } = options;
    const evenClock = now === undefined ? {} : { clockOffsetMs: () => 0 };
    const machine: Machine = { ...thisMachine(), ...evenClock, ...options.machine };
    this.#file = openSqliteFile(path, { ...options, machine });
    this.path = this.#file.path;
    this.isNew = this.#file.isNew;
    this.#copyFault = this.#file.copyFault;
    this.#now = now ?? Date.now;
    try {
      this.#transactions = new SqliteTransactions(this.#file, {
        committing: () => {
          this.#namespaces.write();
          this.#restart.committing();
        },
        committed: () => {
          this.#namespaces.forget();
          if (this.#hasAcceptedCopy) this.#copyFault = undefined;
          this.#hasAcceptedCopy = false;
          this.#restart.committed();
        },
        rolledBack: () => {
          this.#namespaces.forget();
          this.#hasAcceptedCopy = false;
          this.#restart.rolledBack();
        },
        failed: () => this.#restart.failed(),
      });
      this.#namespaces = new SqliteNamespaces(this.#file.database);
      this.#ledger = new SqliteLedger(this.#file.database);
      this.#restart = new RestartDetection({
        machine,
        marker: new RestartMarker(this.path, machine),
        lock: this.#file.lock,
        epsMs,
        records: this.#namespaces.all(),
        isCopy: this.#copyFault !== undefined,
      });
    } catch (error) {
      this.#file.close();
      throw unusable(error, this.path);
    }
  }

  /** As `RestartDetection.restarts`. */
  get restarts(): ReadonlyMap<string, Restart> {
    return this.#restart.restarts;
  }

  async read(namespace: string): Promise<Observed> {
    return this.#transactions.read(() => this.#found(namespace));
  }

  apply(namespace: string, expected: Expected, change: Change): Promise<Applied | Observed> {
    return this.#transactions.add(() => {
      if (!change.acceptsCopy) this.#mustNotBeCopy();
      const found = this.#found(namespace);
      const record = recordToWrite(found, expected, change);
      if (record === undefined) return found;
      const saved = this.#namespaces.save(record);
      this.#restart.wrote(record, saved.fields.k);
      for (const entry of entriesOf(change, record)) this.#ledger.add(saved.id, entry);
      if (change.acceptsCopy) this.#acceptCopy();
      return appliedLocally(record);
    });
  }

  epochCause(namespace: string): string | undefined {
    return this.#restart.causeOf(namespace);
  }

  async readNamespace(namespace: string): Promise<NamespaceRecord> {
    return namespaceRecordIn(await this.read(namespace), namespace);
  }

  async listNamespaces(): Promise<readonly string[]> {
    return this.#transactions.read(() => [...this.#namespaces.all().keys()]);
  }

  setProgress(namespace: string, lease: LedgerEntry, progress: Progress): Promise<boolean> {
    return this.#write(() => {
      const { id } = this.#stored(namespace);
      const held = id === undefined ? undefined : this.#ledger.entryAt(id, lastLedgerIdOf(lease));
      if (id === undefined || held === undefined || !isSameProgress(held.progress, lease.progress)) return false;
      this.#ledger.setProgress(id, lastLedgerIdOf(lease), progress);
      return true;
    });
  }

  /** Of any namespace: they share their holders. In steps, since lease requests wait meanwhile. */
  async hasHolder(_namespace: string, name: string): Promise<boolean> {
    for (let after = 0; ; await turn()) {
      const { last, isFound } = this.#transactions.read(() => this.#ledger.lookForHolder(name, after));
      if (isFound || last === undefined) return isFound;
      after = last;
    }
  }

  async leases(namespace: string, query: LeaseQuery): Promise<readonly LedgerEntry[]> {
    return this.#transactions.read(() => this.#leases(namespace, query));
  }

  async preflight(): Promise<readonly Finding[]> {
    const { path, networkFileSystem } = this.#file;
    const { markerFault, restarts } = this.#restart;
    const mode = fileModeOf(path);
    const fault = this.#copyFault;
    const remedy = `\`${commandLine("recover", undefined)}\``;
    const ofCopy: readonly Finding[] = fault === undefined ? [] : [{ code: fault.code, what: fault.message, remedy }];
    const found = this.#transactions.read(() =>
      sqliteFindings({ path, mode, networkFileSystem, markerFault, restarts }),
    );
    return [...ofCopy, ...(await found)];
  }

  appendLeases(namespace: string, newestLedgerId: number, leases: readonly LedgerEntry[]): Promise<boolean> {
    return this.#write(() => {
      const { id, fields } = this.#stored(namespace);
      const newest = id === undefined ? 0 : this.#ledger.newestId(id);
      if (hasRecord(fields) || newest !== newestLedgerId) return false;
      const namespaceId = this.#namespaces.idOf(namespace);
      for (const lease of leases) this.#ledger.add(namespaceId, lease);
      return true;
    });
  }

  async readRetention(namespace: string): Promise<Retention> {
    return this.#transactions.read(() => this.#retention(namespace));
  }

  setRetentionDays(namespace: string, days: number): Promise<void> {
    return this.#write(() => this.#ledger.setRetention(this.#namespaces.idOf(namespace), days));
  }

  trimLedger(namespace: string, trim: LedgerTrim): Promise<boolean> {
    return this.#write(() => {
      const { fields } = this.#stored(namespace);
      const { through } = this.#retention(namespace);
      const oldest = this.#leases(namespace, { direction: "oldest_first", limit: trim.leases.length + 1 });
      if (!isAsTrimExpects(trim, { fields, through, oldest })) return false;
      this.#ledger.trim(this.#namespaces.idOf(namespace), trim);
      return true;
    });
  }

  async close(): Promise<void> {
    if (!this.#transactions.close()) return;
    this.#restart.close();
    this.#file.close();
  }

  #stored(namespace: string): StoredNamespace | typeof NOTHING_STORED {
    return this.#namespaces.ifThere(namespace) ?? NOTHING_STORED;
  }

  #leases(namespace: string, query: LeaseQuery): readonly LedgerEntry[] {
    const { id } = this.#stored(namespace);
    return id === undefined ? [] : this.#ledger.entries(id, query);
  }

  #retention(namespace: string): Retention {
    const { id } = this.#stored(namespace);
    return id === undefined ? NO_RETENTION : this.#ledger.retention(id);
  }

  #found(namespace: string): Observed {
    const { id, fields } = this.#stored(namespace);
    const ledgerMark = id === undefined ? 0 : this.#ledger.newestId(id);
    return observedLocally({
      fields,
      ledgerMark,
      epoch: this.#restart.epochOf(namespace, fields),
      timeMs: this.#now(),
    });
  }

  /** Of everything but steps. */
  #write<T>(job: () => T): Promise<T> {
    return this.#transactions.add(() => {
      this.#mustNotBeCopy();
      return job();
    });
  }

  #mustNotBeCopy(): void {
    if (this.#copyFault !== undefined && !this.#hasAcceptedCopy) throw this.#copyFault;
  }

  /** From now on this file is the one that the store was made in. */
  #acceptCopy(): void {
    if (this.#copyFault === undefined) return;
    keepIdentity(this.#file.database, this.path);
    this.#hasAcceptedCopy = true;
  }
}
