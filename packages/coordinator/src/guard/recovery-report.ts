/** The last recovery of a namespace in this process, for people: its cause, and what it cost. Decides nothing. */
import type { ErrorCode, RecoveryAnswer } from "@callnumber/protocol/wire";
import type { Log } from "../log.js";
import type { RecordAfter } from "../store.js";
import type { LineWatch } from "./ceiling.js";

export interface RecoveryReportOptions {
  readonly namespace: string;
  readonly log: Log;
  readonly now: () => number;
}

/** A recovery that the store has completed. */
export interface CompletedRecovery {
  /** What it settled. */
  readonly code: ErrorCode;
  /** When the record was written last before it, as far as it was seen. */
  readonly idleSinceMs: number;
  readonly claimed: RecordAfter;
  readonly confirmed: RecordAfter;
}

export class RecoveryReport {
  readonly #options: RecoveryReportOptions;
  readonly #line: LineWatch;
  /** When the record was written last, as far as it was seen. */
  changedAtMs: number;
  last: RecoveryAnswer | null = null;

  constructor(options: RecoveryReportOptions, line: LineWatch, { changedAtMs }: Pick<RecordAfter, "changedAtMs">) {
    this.#options = options;
    this.#line = line;
    this.changedAtMs = changedAtMs;
  }

  note({ code, idleSinceMs, claimed, confirmed }: CompletedRecovery): void {
    const { log, namespace, now } = this.#options;
    const { storeId, version, highWaterMark: mark, epoch } = confirmed;
    const { highWaterMark: before, changedAtMs } = claimed;
    const idleMs = changedAtMs - idleSinceMs;
    this.last = recoveryAnswerOf({ atMs: now(), code, skippedRunCount: mark - before, idleMs });
    const explanation = `${this.last.explanation}, leasing in ${Math.ceil(this.#line.waitMsAfter(confirmed) / 1000)} s`;
    log.warn({ namespace, storeId, version, reason: code, before, mark, epoch, explanation }, "jump");
  }
}

interface RecoveryDone {
  readonly atMs: number;
  /** What the recovery settled. */
  readonly code: ErrorCode;
  readonly skippedRunCount: number;
  /** How long before the recovery the record was written last, as far as this coordinator has seen. */
  readonly idleMs: number;
}

function recoveryAnswerOf({ atMs, code, skippedRunCount, idleMs }: RecoveryDone): RecoveryAnswer {
  const cause = code === "store_silent" ? `Idle for ${span(idleMs)}` : (RECOVERY_CAUSES[code] ?? code);
  const explanation = `${cause}: skipped ${skippedRunCount.toLocaleString("en-US")} ${skippedRunCount === 1 ? "run" : "runs"}`;
  return { atMs, code, skippedRunCount, explanation };
}

const RECOVERY_CAUSES: Readonly<Partial<Record<ErrorCode, string>>> = {
  store_epoch_changed: "The store was restarted, promoted or restored, and may have lost its latest runs",
  store_claimed: "Another coordinator began a recovery and did not complete it",
  store_went_back: "The store lost runs that were leased",
  store_generation_stale: "The store was rolled back, or the checkpoint is damaged",
};

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

function span(ms: number): string {
  if (ms < 2 * HOUR_MS) return `${Math.round(ms / MINUTE_MS)} min`;
  return ms < 2 * DAY_MS ? `${Math.round(ms / HOUR_MS)} h` : `${Math.round(ms / DAY_MS)} days`;
}
