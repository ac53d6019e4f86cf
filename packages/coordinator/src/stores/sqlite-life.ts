/**
 * The lives of an embedded store: under which epoch each namespace may lease in this process. Knows neither SQLite nor leases.
 *
 *   opening ── the restart marker and the record agree ──▶ the record's own epoch: leasing goes on densely
 *   opening ── anything else ──▶ an epoch that no record knows: the next step is refused as a doubt, and jumps
 *   running ── a record is not as this process left it, or the wall clock leapt ──▶ a new epoch, likewise, for all namespaces
 * Guarantees: G11 (docs/guarantees.md).
 */
import { randomUUID } from "node:crypto";
import { hasLeapt, type Present, type Restart, restartMarkOf, restartOf } from "../guard/adopt.js";
import { type FoundFields, type GuardRecord, readRecord } from "../guard/record.js";
import { isRefusal } from "../guard/refusal.js";
import type { Machine } from "./sqlite-machine.js";
import type { RestartMarker } from "./sqlite-restart-marker.js";

export interface SqliteLifeOptions {
  readonly machine: Pick<Machine, "bootId" | "clockOffsetMs">;
  readonly marker: RestartMarker;
  readonly epsMs: number;
  /** All namespaces of the store, as they were found when it was opened. */
  readonly records: ReadonlyMap<string, FoundFields>;
  /** Of a copy nothing is believed, whatever the marker says. */
  readonly isCopy: boolean;
}

export class SqliteLife {
  /** How the start was judged, by namespace; for people. */
  readonly restarts: ReadonlyMap<string, Restart>;

  readonly #machine: SqliteLifeOptions["machine"];
  readonly #epsMs: number;
  readonly #marker: RestartMarker;
  #isMarking = true;
  #epoch = newEpoch();
  readonly #adoptedEpochs = new Map<string, string>();
  /** Checksum of each record as this process has found or left it. */
  readonly #known = new Map<string, string | undefined>();
  /** Records that the transaction under way has written. */
  readonly #written = new Map<string, GuardRecord>();
  #clockOffsetMs: number;

  /** @throws when the marker disagrees and can't be removed. */
  constructor({ machine, marker, epsMs, records, isCopy }: SqliteLifeOptions) {
    this.#machine = machine;
    this.#marker = marker;
    this.#epsMs = epsMs;
    this.#clockOffsetMs = machine.clockOffsetMs();
    const restarts = new Map<string, Restart>();
    const adopted: GuardRecord[] = [];
    for (const [namespace, fields] of records) {
      this.#known.set(namespace, fields["k"]);
      const record = readRecord(fields, namespace);
      if (isRefusal(record)) continue;
      const found = isCopy ? undefined : marker.found.get(namespace);
      const restart = restartOf(found, record, this.#present, epsMs);
      restarts.set(namespace, restart);
      if (restart === "unbroken") adopted.push(record);
    }
    this.restarts = restarts;
    for (const { namespace, epoch } of adopted) this.#adoptedEpochs.set(namespace, epoch);
    if (adopted.length < marker.found.size) this.#markAnew(adopted);
  }

  /** The epoch for a step on a namespace whose record stands as found. */
  epochOf(namespace: string, found: FoundFields): string {
    const offsetMs = this.#machine.clockOffsetMs();
    const leapt = hasLeapt(this.#clockOffsetMs, offsetMs, this.#epsMs);
    this.#clockOffsetMs = offsetMs;
    if (leapt || !this.#isAsLeft(namespace, found)) this.#beginAnew();
    return this.#adoptedEpochs.get(namespace) ?? this.#epoch;
  }

  /** Notes what the transaction under way writes. */
  wrote(record: GuardRecord): void {
    this.#written.set(record.namespace, record);
  }

  /**
   * After the commit, before the answers.
   * @throws when the marker can neither be rewritten nor removed: then nothing may be answered, now or later.
   */
  committed(): void {
    const marks = [...this.#written.values()].map((record) => {
      const mark = restartMarkOf(record, this.#present ?? NOWHERE);
      this.#known.set(record.namespace, mark.checksum);
      return mark;
    });
    this.#written.clear();
    if (!this.#isMarking || marks.length === 0 || this.#present === undefined) return;
    try {
      this.#marker.write(marks);
    } catch {
      this.#endMarking();
    }
  }

  rolledBack(): void {
    this.#written.clear();
  }

  /** Nothing is answered any more, and the next start is to be a doubt. */
  failed(): void {
    try {
      this.#endMarking();
    } catch {
      // A marker that stays says no more than what was answered until now.
    }
  }

  close(): void {
    this.#marker.close();
  }

  #endMarking(): void {
    if (!this.#isMarking) return;
    this.#isMarking = false;
    this.#marker.remove();
  }

  get #present(): Present | undefined {
    const { bootId } = this.#machine;
    return bootId === undefined ? undefined : { bootId, clockOffsetMs: this.#clockOffsetMs };
  }

  #isAsLeft(namespace: string, found: FoundFields): boolean {
    const written = this.#written.get(namespace);
    if (written !== undefined) return true;
    const isSame = this.#known.get(namespace) === found["k"];
    this.#known.set(namespace, found["k"]);
    return isSame;
  }

  #beginAnew(): void {
    this.#epoch = newEpoch();
    this.#adoptedEpochs.clear();
  }

  /** Marks that disagree are gone before anything is leased. */
  #markAnew(adopted: readonly GuardRecord[]): void {
    this.#marker.remove();
    for (const record of adopted) this.wrote(record);
    this.committed();
  }
}

/** Only to have a mark's checksum where none is kept. */
const NOWHERE: Present = { bootId: "", clockOffsetMs: 0 };

function newEpoch(): string {
  return `${randomUUID()}:embedded:0`;
}
