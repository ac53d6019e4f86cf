/**
 * Restart detection: the epoch under which each namespace may lease in this process. Knows neither SQLite nor leases.
 *
 *   opening ── the restart marker and the record agree ──▶ the record's own epoch: leasing continues without skipping runs
 *   opening ── anything else ──▶ an epoch that no record has: the next step is refused, and recovery skips ahead to the ceiling
 *   running ── a record is not as this process left it, or the wall clock leapt ──▶ a new epoch, likewise, for all namespaces
 * Guarantees: G11 (docs/guarantees.md).
 */
import { randomUUID } from "node:crypto";
import { EPS_MS } from "../../guard/bounds.js";
import { type NamespaceState, type ObservedFields, readRecord, storedFields } from "../../guard/record.js";
import { isRefusal } from "../../guard/refusals.js";
import {
  hasLeapt,
  type Present,
  RESTART_CAUSES,
  type Restart,
  restartMarkOf,
  restartOf,
} from "../../guard/restart-decision.js";
import type { Machine } from "./machine.js";
import type { RestartMarker } from "./restart-marker.js";

export interface RestartDetectionOptions {
  readonly machine: Pick<Machine, "bootId" | "clockOffsetMs">;
  readonly marker: RestartMarker;
  readonly epsMs: number;
  /** All namespaces of the store, as they were when it was opened. */
  readonly records: ReadonlyMap<string, ObservedFields>;
  /** A copy is never taken for the store that the marker describes. */
  readonly isCopy: boolean;
}

export class RestartDetection {
  /** `unbroken`, or why the namespace may have rolled back; by namespace. */
  readonly restarts: ReadonlyMap<string, Restart>;

  readonly #machine: RestartDetectionOptions["machine"];
  readonly #epsMs: number;
  readonly #marker: RestartMarker;
  #isMarking = true;
  #epoch = newEpoch();
  /** Why the epoch is another one than at the opening; undefined while it is that one. */
  #laterCause: Restart | undefined;
  readonly #adoptedEpochs = new Map<string, string>();
  /** Checksum of each record as this process has found or left it. */
  readonly #known = new Map<string, string | undefined>();
  /** Records that the current transaction has written, with their checksums. */
  readonly #written = new Map<string, { readonly record: NamespaceState; readonly checksum: string }>();
  #clockOffsetMs: number;

  /** @throws when the marker disagrees with a record and can't be removed. */
  constructor({ machine, marker, epsMs, records, isCopy }: RestartDetectionOptions) {
    this.#machine = machine;
    this.#marker = marker;
    this.#epsMs = epsMs;
    this.#clockOffsetMs = machine.clockOffsetMs();
    // Before anything is leased under this name: a file that gets its old name back must not find its old marker there.
    const storeIds = [...records.values()].map((fields) => fields["sid"]);
    marker.removeOthers(new Set(storeIds.filter((storeId) => storeId !== undefined)));
    for (const [namespace, fields] of records) this.#known.set(namespace, fields["k"]);
    const readable = [...records].map(([namespace, fields]) => readRecord(fields, namespace));
    const states = readable.filter((record): record is NamespaceState => !isRefusal(record));
    const restarts = new Map<string, Restart>();
    for (const record of states) {
      const found = isCopy ? undefined : marker.found.get(record.namespace);
      restarts.set(record.namespace, restartOf(found, record, this.#present, epsMs));
    }
    const unbroken = states.filter(({ namespace }) => restarts.get(namespace) === "unbroken");
    // A copy that was put back is younger than each mark in it: no program can set the time of a change.
    const isPutBack = marker.changedAtMs > this.#newestWriteMs(marker) + EPS_MS;
    const adopted = isPutBack ? [] : unbroken;
    if (isPutBack) for (const { namespace } of unbroken) restarts.set(namespace, "mark_put_back");
    this.restarts = restarts;
    for (const { namespace, epoch } of adopted) this.#adoptedEpochs.set(namespace, epoch);
    if (adopted.length < marker.found.size) this.#rewriteMarker(adopted);
  }

  /** The epoch for a step on a namespace, given its record as found. */
  epochOf(namespace: string, found: ObservedFields): string {
    const offsetMs = this.#machine.clockOffsetMs();
    const leapt = hasLeapt(this.#clockOffsetMs, offsetMs, this.#epsMs);
    this.#clockOffsetMs = offsetMs;
    const isAsLeft = this.#isAsLeft(namespace, found);
    if (leapt || !isAsLeft) this.#beginEpoch(leapt ? "clock_leapt" : "other_record");
    return this.#adoptedEpochs.get(namespace) ?? this.#epoch;
  }

  /** Why a namespace may have rolled back at its last change of the epoch, for people; undefined when it did not change. */
  causeOf(namespace: string): string | undefined {
    const restart = this.#laterCause ?? this.restarts.get(namespace) ?? "unbroken";
    return restart === "unbroken" ? undefined : RESTART_CAUSES[restart];
  }

  /** Notes a record that the current transaction writes. */
  wrote(record: NamespaceState, checksum: string): void {
    this.#written.set(record.namespace, { record, checksum });
  }

  /**
   * Writes the marker before the commit: it never describes less than the store holds.
   * @throws when it can neither be rewritten nor removed: then nothing may be committed, now or later.
   */
  committing(): void {
    const present = this.#present;
    if (!this.#isMarking || present === undefined || this.#written.size === 0) return;
    try {
      const written = [...this.#written.values()];
      this.#marker.write(written.map(({ record, checksum }) => restartMarkOf(record, checksum, present)));
    } catch {
      this.#endMarking();
    }
  }

  committed(): void {
    for (const [namespace, { checksum }] of this.#written) this.#known.set(namespace, checksum);
    this.#written.clear();
  }

  rolledBack(): void {
    this.#written.clear();
  }

  /** No step is answered any more, and the next start must be recovered. */
  failed(): void {
    try {
      this.#endMarking();
    } catch {
      // A marker that stays describes what the store was to hold, or held: no step was answered beyond that.
    }
  }

  /** Whether the next start can continue without skipping runs, as far as is known. */
  get isMarking(): boolean {
    return this.#isMarking && this.#marker.path !== undefined && this.#machine.bootId !== undefined;
  }

  close(): void {
    this.#marker.close();
  }

  #endMarking(): void {
    if (!this.#isMarking) return;
    this.#isMarking = false;
    this.#marker.remove();
  }

  /** Of the marks by this clock: another one may have been in the future. */
  #newestWriteMs({ found }: RestartMarker): number {
    const present = this.#present;
    const ofThisClock = [...found.values()].filter(
      ({ bootId, clockOffsetMs }) =>
        bootId === present?.bootId && !hasLeapt(clockOffsetMs, present.clockOffsetMs, this.#epsMs),
    );
    return Math.max(...ofThisClock.map(({ writtenAtMs }) => writtenAtMs));
  }

  get #present(): Present | undefined {
    const { bootId } = this.#machine;
    return bootId === undefined ? undefined : { bootId, clockOffsetMs: this.#clockOffsetMs };
  }

  #isAsLeft(namespace: string, found: ObservedFields): boolean {
    if (this.#written.has(namespace)) return true;
    const isSame = this.#known.get(namespace) === found["k"];
    this.#known.set(namespace, found["k"]);
    return isSame;
  }

  #beginEpoch(cause: Restart): void {
    this.#laterCause = cause;
    this.#epoch = newEpoch();
    this.#adoptedEpochs.clear();
  }

  /** Removes marks that disagree before anything is leased. */
  #rewriteMarker(adopted: readonly NamespaceState[]): void {
    this.#marker.remove();
    for (const record of adopted) this.wrote(record, storedFields(record).k);
    this.committing();
    this.committed();
  }
}

function newEpoch(): string {
  return `${randomUUID()}:embedded:0`;
}
