/**
 * Restart detection: the epoch under which each namespace may lease in this process. Knows neither SQLite nor leases.
 *
 *   opening ── marker, lock file and record agree ──▶ the record's own epoch: leasing continues without skipping runs
 *   opening ── anything else ──▶ an epoch that no record has: the next step is refused, and recovery skips ahead to the ceiling
 *   running ── a record is not as this process left it, or the wall clock leapt ──▶ a new epoch, likewise, for all namespaces
 * Guarantees: G11 (docs/guarantees.md).
 */
import { randomUUID } from "node:crypto";
import { EPS_MS } from "../../guard/clocks.js";
import { type NamespaceState, type ObservedFields, readRecord, storedFields } from "../../guard/record.js";
import { isRefusal } from "../../guard/refusals.js";
import {
  hasLeapt,
  type Present,
  RESTART_CAUSES,
  type Restart,
  type RestartMark,
  restartMarkOf,
  restartOf,
} from "../../guard/restart-decision.js";
import { reasonOf } from "./errors.js";
import type { LockFile } from "./lock-file.js";
import type { Machine } from "./machine.js";
import type { MarkerFault, RestartMarker } from "./restart-marker.js";

export interface RestartDetectionOptions {
  readonly machine: Pick<Machine, "bootId" | "clockOffsetMs">;
  readonly marker: RestartMarker;
  readonly lock: Pick<LockFile, "change" | "changedNs">;
  readonly epsMs: number;
  /** All namespaces of the store, as they were when it was opened. */
  readonly records: ReadonlyMap<string, ObservedFields>;
  /** A copy is never taken for the store that the marker describes. */
  readonly isCopy: boolean;
}

/** Results of a namespace whose mark is of this boot and clock. */
const OF_THIS_CLOCK: ReadonlySet<Restart> = new Set(["unbroken", "lock_changed", "other_record"]);

export class RestartDetection {
  /** `unbroken`, or why the namespace may have rolled back; by namespace. */
  readonly restarts: ReadonlyMap<string, Restart>;

  readonly #machine: RestartDetectionOptions["machine"];
  readonly #epsMs: number;
  readonly #marker: RestartMarker;
  readonly #lock: RestartDetectionOptions["lock"];
  readonly #storeIds: ReadonlySet<string>;
  /** Whether this process has committed a record, or tried to: until then it has changed neither lock file nor marker. */
  #hasBegun = false;
  /** Why the marker is not written any more. */
  #markerFault: MarkerFault | undefined;
  /** Undefined where the file system does not note it. */
  #lockChangedNs: string | undefined;
  #epoch = newEpoch();
  /** Why the epoch is another one than at the opening; undefined while it is that one. */
  #laterCause: Restart | undefined;
  /** Records as they were at the opening, whose epoch goes on. */
  readonly #adopted = new Map<string, NamespaceState>();
  /** Checksum of each record as this process has found or left it. */
  readonly #known = new Map<string, string | undefined>();
  /** Records that the current transaction has written, with their checksums. */
  readonly #written = new Map<string, { readonly record: NamespaceState; readonly checksum: string }>();
  #clockOffsetMs: number;

  constructor({ machine, marker, lock, epsMs, records, isCopy }: RestartDetectionOptions) {
    this.#machine = machine;
    this.#marker = marker;
    this.#lock = lock;
    this.#epsMs = epsMs;
    this.#clockOffsetMs = machine.clockOffsetMs();
    this.#lockChangedNs = lock.changedNs();
    const storeIds = [...records.values()].map((fields) => fields["sid"]);
    this.#storeIds = new Set(storeIds.filter((storeId) => storeId !== undefined));
    for (const [namespace, fields] of records) this.#known.set(namespace, fields["k"]);
    const readable = [...records].map(([namespace, fields]) => readRecord(fields, namespace));
    const restarts = new Map<string, Restart>();
    for (const record of readable) {
      if (isRefusal(record)) continue;
      const { namespace } = record;
      const found = isCopy ? undefined : marker.found.marks.get(namespace);
      const restart = restartOf(found, record, this.#present, epsMs);
      restarts.set(namespace, OF_THIS_CLOCK.has(restart) && this.#isPutBack() ? "mark_put_back" : restart);
      if (restarts.get(namespace) === "unbroken") this.#adopted.set(namespace, record);
    }
    this.restarts = restarts;
  }

  /** The epoch for a step on a namespace, given its record as found. */
  epochOf(namespace: string, found: ObservedFields): string {
    const offsetMs = this.#machine.clockOffsetMs();
    const leapt = hasLeapt(this.#clockOffsetMs, offsetMs, this.#epsMs);
    this.#clockOffsetMs = offsetMs;
    const isAsLeft = this.#isAsLeft(namespace, found);
    if (leapt || !isAsLeft) this.#beginEpoch(leapt ? "clock_leapt" : "other_record");
    return this.#adopted.get(namespace)?.epoch ?? this.#epoch;
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
   * @throws when the lock file can't be changed, or the marker neither be rewritten nor removed: then nothing may be committed, now or later.
   */
  committing(): void {
    if (this.#written.size === 0) return;
    const written = [...this.#written.values()];
    const first = this.#hasBegun ? [] : this.#begin();
    const present = this.#present;
    if (this.#markerFault !== undefined || present === undefined) return;
    try {
      this.#marker.write([
        ...first,
        ...written.map(({ record, checksum }) => restartMarkOf(record, checksum, present)),
      ]);
    } catch (error) {
      this.#endMarking(`it can't be written (${reasonOf(error)})`);
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
      this.#endMarking("the store failed");
    } catch {
      // A marker that stays describes what the store was to hold, or held: no step was answered beyond that.
    }
  }

  /** Why the next start skips runs, as far as is known; undefined when it may continue. */
  get markerFault(): MarkerFault | undefined {
    if (this.#machine.bootId === undefined) return { why: "this system has no id of its boot", remedy: "Linux" };
    return this.#markerFault ?? this.#marker.fault;
  }

  close(): void {
    this.#marker.close();
  }

  /** Voids every marker, also those that this process can't see, and returns the marks of records that go on. */
  #begin(): readonly RestartMark[] {
    this.#lockChangedNs = this.#lock.change();
    this.#marker.begin(this.#storeIds);
    this.#hasBegun = true;
    const present = this.#present;
    if (this.#lockChangedNs === undefined) {
      const why = "its file system does not note when its lock file was changed";
      this.#markerFault = { why, remedy: "another file system" };
    }
    if (present === undefined) return [];
    const others = [...this.#adopted.values()].filter(({ namespace }) => !this.#written.has(namespace));
    return others.map((record) => restartMarkOf(record, storedFields(record).k, present));
  }

  #endMarking(why: string): void {
    this.#markerFault ??= { why, remedy: "a tmpfs with room at /dev/shm (Linux)" };
    this.#marker.remove();
  }

  /**
   * Whether the marker that was found is a copy, or younger than each mark in it, as one that was put back: no program can set the time
   * of a change. Of the marks by this clock: another one may have been in the future.
   */
  #isPutBack(): boolean {
    const { marks, changedAtMs, ino } = this.#marker.found;
    const present = this.#present;
    const ofThisClock = [...marks.values()].filter(
      ({ bootId, clockOffsetMs }) =>
        bootId === present?.bootId && !hasLeapt(clockOffsetMs, present.clockOffsetMs, this.#epsMs),
    );
    const newestMs = Math.max(...ofThisClock.map(({ writtenAtMs }) => writtenAtMs));
    return changedAtMs > newestMs + EPS_MS || ofThisClock.some((mark) => mark.ino !== ino);
  }

  get #present(): Present | undefined {
    const { bootId } = this.#machine;
    const lockChangedNs = this.#lockChangedNs;
    if (bootId === undefined || lockChangedNs === undefined) return undefined;
    return { bootId, clockOffsetMs: this.#clockOffsetMs, lockChangedNs };
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
    this.#adopted.clear();
  }
}

function newEpoch(): string {
  return `${randomUUID()}:embedded:0`;
}
