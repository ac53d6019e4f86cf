/**
 * Whether a store that only one process at a time has open may go on as if it had never stopped. Pure.
 * A start may be a rollback: a file that was restored in place looks as it did before. Only a mark that lies where no backup reaches, that
 * has all that the record has, and since which no one else has leased, shows that nothing was forgotten in between.
 */
import { type NamespaceState, PHASES, storedFields } from "./record.js";

/** The record of a namespace as it was last to be written, and the machine it was written on. */
export interface RestartMark {
  /** One life of the machine: what is kept in its memory ends with it. */
  readonly bootId: string;
  /** Wall clock minus monotonic clock, ms. It leaps when a machine is put back to an earlier state of itself. */
  readonly clockOffsetMs: number;
  /** When the store's lock file was last changed, ns: everyone who leases changes it first. */
  readonly lockChangedNs: string;
  readonly namespace: string;
  readonly storeId: string;
  readonly version: number;
  readonly highWaterMark: number;
  readonly generation: number;
  /** The record's, over all its fields. */
  readonly checksum: string;
}

/** The machine and the lock file at this moment. */
export type Present = Pick<RestartMark, "bootId" | "clockOffsetMs" | "lockChangedNs">;

/** The result for a start: `unbroken`, or why the store may have rolled back. */
export type Restart =
  | "unbroken"
  | "no_mark"
  | "other_boot"
  | "clock_leapt"
  | "lock_changed"
  | "mark_put_back"
  | "other_record"
  | "not_open";

/** Why a start may be a rollback, for people. */
export const RESTART_CAUSES: Readonly<Record<Exclude<Restart, "unbroken">, string>> = {
  no_mark: "no valid restart marker was found, as after a restart of the machine",
  other_boot: "the machine was restarted",
  clock_leapt: "the clock was set, or the machine slept",
  lock_changed:
    "the store was used from elsewhere since the restart marker was written, or its lock file was changed or removed",
  mark_put_back: "an older restart marker was put back, or its mode or times were changed",
  other_record: "the file is not as it was left: restored, or killed during a lease",
  not_open: "a recovery had begun",
};

const SAME_RECORD = ["namespace", "storeId", "version", "highWaterMark", "generation", "checksum"] as const;

/** `checksum` is the record's, as it is kept. */
export function restartMarkOf(record: NamespaceState, checksum: string, present: Present): RestartMark {
  const { namespace, storeId, version, highWaterMark, generation } = record;
  return { ...present, namespace, storeId, version, highWaterMark, generation, checksum };
}

/**
 * Judges a start by the mark that was found and the record as the store holds it now. How long the store was silent is not judged
 * here: every step does.
 */
export function restartOf(
  found: RestartMark | undefined,
  record: NamespaceState,
  present: Present | undefined,
  epsMs: number,
): Restart {
  if (found === undefined || present === undefined) return "no_mark";
  if (found.bootId !== present.bootId) return "other_boot";
  if (hasLeapt(found.clockOffsetMs, present.clockOffsetMs, epsMs)) return "clock_leapt";
  if (found.lockChangedNs !== present.lockChangedNs) return "lock_changed";
  const expected = restartMarkOf(record, storedFields(record).k, present);
  if (SAME_RECORD.some((name) => found[name] !== expected[name])) return "other_record";
  return record.phase === PHASES.open ? "unbroken" : "not_open";
}

/** Whether the wall clock moved against the monotonic one by more than clocks may lie apart. */
export function hasLeapt(offsetBeforeMs: number, offsetMs: number, epsMs: number): boolean {
  return !(Math.abs(offsetMs - offsetBeforeMs) <= epsMs);
}
