/**
 * The embedded store: one SQLite file, one process. All changes of one turn of the event loop share one transaction and
 * one sync of the disk, and none is answered before it.
 */

import { commandLine } from "@callnumber/protocol/operator";
import { type Holder, type LedgerEntry, ledgerIdOf, runOfLedgerId } from "@callnumber/protocol/wire";
import type { CoordinatorError } from "../errors.js";
import type { Restart } from "../guard/adopt.js";
import { type Bounds, DEFAULT_BOUNDS } from "../guard/bounds.js";
import type { ObservedKeys } from "../guard/checks.js";
import { decide } from "../guard/decide.js";
import type { NamespaceState } from "../guard/record.js";
import { isRefusal, notLeased, refused } from "../guard/refusals.js";
import {
  type Finding,
  LEDGER_TRIM_LEASES_MAX,
  type LeaseStep,
  type LedgerTrim,
  type NamespaceRecord,
  type Outcome,
  type ReportCommand,
  type Retention,
  type StepCommand,
  type Store,
} from "../store.js";
import { leasesToAppend } from "./import-decision.js";
import { labelsIn, labelsText } from "./kept-labels.js";
import { holderJsonOf } from "./ledger-entry.js";
import { namespaceRecordIn, recordAfter } from "./namespace-record.js";
import { decideReport } from "./report-decision.js";
import { unusable } from "./sqlite-faults.js";
import { openSqliteFile, type SqliteFile } from "./sqlite-file.js";
import { keepIdentity } from "./sqlite-file-identity.js";
import { SqliteLabels } from "./sqlite-labels.js";
import { NO_RETENTION, SqliteLedger } from "./sqlite-ledger.js";
import { SqliteLife } from "./sqlite-life.js";
import { type Machine, thisMachine } from "./sqlite-machine.js";
import { sqliteFindings } from "./sqlite-preflight.js";
import { fileModeOf } from "./sqlite-private-file.js";
import { hasRecord, SqliteRecords } from "./sqlite-records.js";
import { openRestartMarker, type RestartMarker } from "./sqlite-restart-marker.js";
import { SqliteTurns } from "./sqlite-turns.js";
import { decideTrim } from "./trim-decision.js";

export interface SqliteStoreOptions {
  readonly path: string;
  /** Whether a new file may be made where there is none. */
  readonly create: boolean;
  /** Called where there is no store, before anything is made. @throws when one is known to have been there. Default: nothing is known. */
  readonly mustNotBeLost?: () => void;
  /** The clock, in milliseconds. One that is given is taken to run evenly: its leaps are not looked for. */
  readonly now?: () => number;
  readonly bounds?: Bounds;
  /** Opens also a copy, for an operator who says that the original is gone: every step but `recover` is refused until one is done. */
  readonly acceptCopy?: boolean;
  /** An operator says that no other machine ever uses the store. Default false: a store on a network file system is refused. */
  readonly allowNetworkFileSystem?: boolean;
  /** What is asked of the machine; others than its own answers are for tests. */
  readonly machine?: Partial<Machine>;
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
  readonly #records: SqliteRecords;
  readonly #ledger: SqliteLedger;
  readonly #labels: SqliteLabels;
  readonly #life: SqliteLife;
  readonly #turns: SqliteTurns;
  /** Why nothing but `recover` is done; undefined once the file is the one that the store was made in. */
  #copyFault: CoordinatorError | undefined;
  /** A `recover` in the transaction under way has made this file the store's. */
  #hasAcceptedCopy = false;

  /** @throws CoordinatorError as `openSqliteFile`. */
  constructor(options: SqliteStoreOptions) {
    const { path, create, mustNotBeLost = () => {}, now, bounds = DEFAULT_BOUNDS } = options;
    const { acceptCopy = false, allowNetworkFileSystem = false } = options;
    const evenClock = now === undefined ? {} : { clockOffsetMs: () => 0 };
    const machine: Machine = { ...thisMachine(), ...evenClock, ...options.machine };
    this.#file = openSqliteFile(path, { create, mustNotBeLost, acceptCopy, allowNetworkFileSystem, machine });
    this.path = this.#file.path;
    this.isNew = this.#file.isNew;
    this.#copyFault = this.#file.copyFault;
    this.#now = now ?? Date.now;
    this.#bounds = bounds;
    let marker: RestartMarker | undefined;
    try {
      this.#turns = new SqliteTurns(this.#file, {
        committing: () => this.#committing(),
        committed: () => this.#committed(),
        rolledBack: () => this.#rolledBack(),
        failed: () => this.#life.failed(),
      });
      this.#records = new SqliteRecords(this.#file.database);
      this.#ledger = new SqliteLedger(this.#file.database);
      this.#labels = new SqliteLabels(this.#file.database);
      marker = openRestartMarker(this.path, machine);
      this.#life = new SqliteLife({
        machine,
        marker,
        epsMs: bounds.epsMs,
        records: this.#records.all(),
        isCopy: this.#copyFault !== undefined,
      });
    } catch (error) {
      marker?.close();
      this.#file.close();
      throw unusable(error, this.path);
    }
  }

  /** How the start was judged, by namespace: `unbroken` where leasing goes on densely, else why it is a doubt. */
  get restarts(): ReadonlyMap<string, Restart> {
    return this.#life.restarts;
  }

  step(namespace: string, command: StepCommand): Promise<Outcome> {
    return this.#turns.add(() => {
      if (command.step !== "recover") this.#mustNotBeCopy();
      const keys = this.#found(namespace);
      const nowMs = this.#now();
      const epoch = this.#life.epochOf(namespace, keys.fields);
      const server = { timeMs: nowMs, role: "master", epoch, connectedReplicas: 0 };
      const written = decide({ namespace, keys, server, nowMs, bounds: this.#bounds }, command);
      if (isRefusal(written)) throw refused(written.word, written.detail, namespace);
      const { record, runCount } = written;
      const namespaceId = this.#save(record);
      if (command.step === "lease") this.#addLease(namespaceId, record, runCount, command);
      if (command.step === "recover") this.#acceptCopy();
      const after = recordAfter(record, command.nonce);
      const { nonce, generation } = after;
      return { after, runCount, acknowledgedCount: 0, check: { nonce, role: "master", epoch, generation } };
    });
  }

  async readNamespace(namespace: string): Promise<NamespaceRecord> {
    return this.#turns.read(() => namespaceRecordIn(this.#records.of(namespace).fields, namespace));
  }

  async listNamespaces(): Promise<readonly string[]> {
    return this.#turns.read(() => [...this.#records.all().keys()]);
  }

  report(namespace: string, ledgerId: number, command: ReportCommand): Promise<void> {
    return this.#turns.add(() => {
      this.#mustNotBeCopy();
      const { id } = this.#records.of(namespace);
      const lease = this.#ledger.reportable(id, ledgerId);
      if (lease === undefined) throw notLeased(namespace, ledgerId);
      const progress = decideReport(lease, runOfLedgerId(ledgerId).run, command, this.#now());
      this.#ledger.setProgress(id, lease.lastLedgerId, progress);
    });
  }

  async findLease(namespace: string, ledgerId: number): Promise<LedgerEntry | undefined> {
    return this.#turns.read(() => this.#ledger.entryOf(this.#records.of(namespace).id, ledgerId));
  }

  async listLeases(
    namespace: string,
    { belowLedgerId, limit }: { readonly belowLedgerId: number; readonly limit: number },
  ): Promise<readonly LedgerEntry[]> {
    return this.#turns.read(() => this.#ledger.below(this.#records.of(namespace).id, belowLedgerId, limit));
  }

  async firstLeaseSince(namespace: string, timeMs: number): Promise<LedgerEntry | undefined> {
    return this.#turns.read(() => this.#ledger.firstSince(this.#records.of(namespace).id, timeMs));
  }

  async preflight(): Promise<readonly Finding[]> {
    const { path, networkFileSystem } = this.#file;
    const { isMarking, restarts } = this.#life;
    const mode = fileModeOf(path);
    const fault = this.#copyFault;
    const ofCopy: readonly Finding[] =
      fault === undefined
        ? []
        : [{ code: fault.code, what: fault.message, remedy: `\`${commandLine("recover", undefined)}\`` }];
    const found = this.#turns.read(() => sqliteFindings({ path, mode, networkFileSystem, isMarking, restarts }));
    return [...ofCopy, ...(await found)];
  }

  async exportLeases(
    namespace: string,
    { afterLedgerId, limit }: { readonly afterLedgerId: number; readonly limit: number },
  ): Promise<readonly LedgerEntry[]> {
    return this.#turns.read(() => {
      const standing = this.#records.ifThere(namespace);
      return standing === undefined ? [] : this.#ledger.after(standing.id, afterLedgerId, limit);
    });
  }

  importLeases(namespace: string, leases: readonly LedgerEntry[]): Promise<void> {
    return this.#turns.add(() => {
      this.#mustNotBeCopy();
      const standing = this.#records.ifThere(namespace);
      const there = {
        namespace,
        hasRecord: standing !== undefined && hasRecord(standing.fields),
        newestLedgerId: standing === undefined ? 0 : this.#ledger.mark(standing.id),
        leaseAt: (ledgerId: number) => standing && this.#ledger.endingAt(standing.id, ledgerId),
      };
      const missing = leasesToAppend(there, leases);
      if (missing.length === 0) return;
      const id = this.#records.idOf(namespace);
      for (const lease of missing) this.#ledger.addTakenOver(id, lease);
    });
  }

  describeNamespace(namespace: string, labels: Holder["labels"]): Promise<void> {
    return this.#turns.add(() => {
      this.#mustNotBeCopy();
      this.#labels.set(this.#records.of(namespace).id, labelsText(labels));
    });
  }

  async readDescription(namespace: string): Promise<Holder["labels"]> {
    return this.#turns.read(() => labelsIn(this.#labels.of(this.#records.of(namespace).id) ?? "{}", namespace));
  }

  async readRetention(namespace: string): Promise<Retention> {
    return this.#turns.read(() => {
      const standing = this.#records.ifThere(namespace);
      return standing === undefined ? NO_RETENTION : this.#ledger.retention(standing.id);
    });
  }

  setRetention(namespace: string, days: number): Promise<void> {
    return this.#turns.add(() => {
      this.#mustNotBeCopy();
      this.#ledger.setRetention(this.#records.idOf(namespace), days);
    });
  }

  trimLedger(namespace: string, trim: LedgerTrim): Promise<boolean> {
    return this.#turns.add(() => {
      this.#mustNotBeCopy();
      const { id, fields } = this.#records.ifThere(namespace) ?? { id: undefined, fields: undefined };
      const found = {
        namespace,
        fields,
        trimmedThrough: id === undefined ? 0 : this.#ledger.retention(id).through,
        newestLedgerId: id === undefined ? 0 : this.#ledger.mark(id),
        leases: id === undefined ? [] : this.#ledger.upTo(id, trim.through, LEDGER_TRIM_LEASES_MAX + 1),
      };
      if (!decideTrim(found, trim)) return false;
      this.#ledger.trim(this.#records.idOf(namespace), trim);
      return true;
    });
  }

  async close(): Promise<void> {
    if (!this.#turns.close()) return;
    this.#life.close();
    this.#file.close();
  }

  #committing(): void {
    this.#records.write();
    this.#life.committing();
  }

  #committed(): void {
    this.#records.forget();
    if (this.#hasAcceptedCopy) this.#copyFault = undefined;
    this.#hasAcceptedCopy = false;
    this.#life.committed();
  }

  #rolledBack(): void {
    this.#records.forget();
    this.#hasAcceptedCopy = false;
    this.#life.rolledBack();
  }

  #found(namespace: string): ObservedKeys {
    const standing = this.#records.ifThere(namespace);
    const isThere = standing !== undefined;
    const ledgerMark = isThere ? this.#ledger.mark(standing.id) : 0;
    return {
      record: isThere && hasRecord(standing.fields) ? "hash" : "none",
      fields: isThere ? standing.fields : {},
      expires: false,
      ledger: ledgerMark === 0 ? "none" : "stream",
      ledgerMark,
      holders: "hash",
    };
  }

  /** The id of its namespace. */
  #save(record: NamespaceState): number {
    const { id, fields } = this.#records.save(record);
    this.#life.wrote(record, fields.k);
    return id;
  }

  #addLease(namespaceId: number, record: NamespaceState, runCount: number, command: LeaseStep): void {
    const { version, highWaterMark: mark, changedAtMs: leasedAtMs } = record;
    const lastLedgerId = ledgerIdOf(version, mark);
    const holderJson = holderJsonOf(command);
    this.#ledger.add(namespaceId, { lastLedgerId, runCount, leasedAtMs, holderJson, nonce: command.leaseNonce });
  }

  #mustNotBeCopy(): void {
    if (this.#copyFault !== undefined && !this.#hasAcceptedCopy) throw this.#copyFault;
  }

  /** Who recovers a copy says that the original is gone: from now on this file is the one that the store was made in. */
  #acceptCopy(): void {
    if (this.#copyFault === undefined) return;
    keepIdentity(this.#file.database, this.path);
    this.#hasAcceptedCopy = true;
  }
}
