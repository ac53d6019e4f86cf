/**
 * The embedded store: one SQLite file, one process. All changes of one turn of the event loop share one transaction and
 * one sync of the disk, and none is answered before it.
 */

import { commandLine } from "@callnumber/protocol/operator";
import { type LedgerEntry, runOfLedgerId } from "@callnumber/protocol/wire";
import type { CoordinatorError } from "../../errors.js";
import { type Bounds, DEFAULT_BOUNDS } from "../../guard/bounds.js";
import { notLeased } from "../../guard/refusals.js";
import type { Restart } from "../../guard/restart-decision.js";
import { isMovedSeal } from "../../guard/seals.js";
import { lastLedgerIdOf } from "../../ledger/lease-identity.js";
import { decideReport, decideTrim, leasesToAppend } from "../ledger-decisions.js";
import {
  type Finding,
  LEDGER_TRIM_LEASES_MAX,
  type LeaseQuery,
  type LedgerTrim,
  type NamespaceRecord,
  NO_RETENTION,
  type Outcome,
  type ReportCommand,
  type Retention,
  type StepCommand,
  type Store,
} from "../store.js";
import { decideLocally, hasRecord, namespaceRecordIn } from "../stored-shapes.js";
import { unusable } from "./errors.js";
import { openSqliteFile, type SqliteFile, type SqliteFileOptions } from "./file.js";
import { fileModeOf } from "./file-checks.js";
import { keepIdentity } from "./file-identity.js";
import { sqliteFindings } from "./findings.js";
import { type Machine, thisMachine } from "./machine.js";
import { RestartDetection } from "./restart-detection.js";
import { RestartMarker } from "./restart-marker.js";
import { SqliteLedger, SqliteNamespaces } from "./tables.js";
import { SqliteTransactions } from "./transactions.js";

export interface SqliteStoreOptions extends Omit<SqliteFileOptions, "machine"> {
  readonly path: string;
  /** The clock, in milliseconds. One that is given is taken to run evenly: its leaps are not looked for. */
  readonly now?: () => number;
  /** The bounds of the guard; tests replace the default. */
  readonly bounds?: Bounds;
  /** Tests replace parts of it. */
  readonly machine?: Partial<Machine>;
}

const NOTHING_STORED = { id: undefined, fields: {} } as const;

/** An operator who recovers a copy states that the original is gone. One that is sealed for a move leases nothing. */
function acceptsCopy(command: StepCommand): boolean {
  return command.step === "recover" || (command.step === "seal" && isMovedSeal(command.seal));
}

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
    const { path, now, bounds = DEFAULT_BOUNDS } = options;
    const evenClock = now === undefined ? {} : { clockOffsetMs: () => 0 };
    const machine: Machine = { ...thisMachine(), ...evenClock, ...options.machine };
    this.#file = openSqliteFile(path, { ...options, machine });
    this.path = this.#file.path;
    this.isNew = this.#file.isNew;
    this.#copyFault = this.#file.copyFault;
    this.#now = now ?? Date.now;
    this.#bounds = bounds;
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
        epsMs: bounds.epsMs,
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

  step(namespace: string, command: StepCommand): Promise<Outcome> {
    return this.#transactions.add(() => {
      if (!acceptsCopy(command)) this.#mustNotBeCopy();
      const { id: knownId, fields } = this.#namespaces.ifThere(namespace) ?? NOTHING_STORED;
      const ledgerMark = knownId === undefined ? 0 : this.#ledger.newestId(knownId);
      const nowMs = this.#now();
      const epoch = this.#restart.epochOf(namespace, fields);
      const found = { namespace, fields, ledgerMark, epoch, nowMs, bounds: this.#bounds };
      const { record, outcome, entry } = decideLocally(found, command);
      const saved = this.#namespaces.save(record);
      this.#restart.wrote(record, saved.fields.k);
      if (entry !== undefined) this.#ledger.add(saved.id, entry);
      if (acceptsCopy(command)) this.#acceptCopy();
      return outcome;
    });
  }

  epochCause(namespace: string): string | undefined {
    return this.#restart.causeOf(namespace);
  }

  async readNamespace(namespace: string): Promise<NamespaceRecord> {
    return this.#transactions.read(() => namespaceRecordIn(this.#namespaces.of(namespace).fields, namespace));
  }

  async listNamespaces(): Promise<readonly string[]> {
    return this.#transactions.read(() => [...this.#namespaces.all().keys()]);
  }

  report(namespace: string, ledgerId: number, command: ReportCommand): Promise<void> {
    return this.#write(() => {
      const { id } = this.#namespaces.of(namespace);
      const lease = this.#ledger.entryOf(id, ledgerId);
      if (lease === undefined) throw notLeased(namespace, ledgerId);
      const progress = decideReport(lease, runOfLedgerId(ledgerId).run, command, this.#now());
      this.#ledger.setProgress(id, lastLedgerIdOf(lease), progress);
    });
  }

  async leases(namespace: string, query: LeaseQuery): Promise<readonly LedgerEntry[]> {
    return this.#transactions.read(() => {
      const { id } = query.withoutRecord
        ? (this.#namespaces.ifThere(namespace) ?? NOTHING_STORED)
        : this.#namespaces.of(namespace);
      return id === undefined ? [] : this.#ledger.entries(id, query);
    });
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

  importLeases(namespace: string, leases: readonly LedgerEntry[]): Promise<void> {
    return this.#write(() => {
      const stored = this.#namespaces.ifThere(namespace);
      const found = {
        namespace,
        hasRecord: stored !== undefined && hasRecord(stored.fields),
        newestLedgerId: stored === undefined ? 0 : this.#ledger.newestId(stored.id),
        leaseAt: (ledgerId: number) => stored && this.#ledger.entryOf(stored.id, ledgerId),
      };
      const missing = leasesToAppend(found, leases);
      if (missing.length === 0) return;
      const id = this.#namespaces.idOf(namespace);
      for (const lease of missing) this.#ledger.add(id, lease);
    });
  }

  async readRetention(namespace: string): Promise<Retention> {
    return this.#transactions.read(() => {
      const id = this.#namespaces.ifThere(namespace)?.id;
      return id === undefined ? NO_RETENTION : this.#ledger.retention(id);
    });
  }

  setRetentionDays(namespace: string, days: number): Promise<void> {
    return this.#write(() => this.#ledger.setRetention(this.#namespaces.idOf(namespace), days));
  }

  trimLedger(namespace: string, trim: LedgerTrim): Promise<boolean> {
    return this.#write(() => {
      const stored = this.#namespaces.ifThere(namespace);
      const found = {
        namespace,
        fields: stored?.fields,
        trimmedThrough: stored === undefined ? 0 : this.#ledger.retention(stored.id).through,
        newestLedgerId: stored === undefined ? 0 : this.#ledger.newestId(stored.id),
        leases: stored === undefined ? [] : this.#ledger.upTo(stored.id, trim.through, LEDGER_TRIM_LEASES_MAX + 1),
      };
      if (!decideTrim(found, trim)) return false;
      this.#ledger.trim(this.#namespaces.idOf(namespace), trim);
      return true;
    });
  }

  async close(): Promise<void> {
    if (!this.#transactions.close()) return;
    this.#restart.close();
    this.#file.close();
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
