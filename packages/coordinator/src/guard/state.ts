/** Whether a namespace leases, in words: from the last refusal to what an operator reads. */
import { RUN_MAX } from "@callnumber/protocol/codec";
import type { ErrorCode, GuardAnswer, RecoveryAnswer } from "@callnumber/protocol/wire";
import type { CoordinatorError } from "../errors.js";
import type { RecordAfter } from "../store.js";

/** Doubts about the store's memory: a coordinator settles them by itself, by claim and confirm. */
const DOUBTS: ReadonlySet<ErrorCode> = new Set([
  "store_epoch_changed",
  "store_claimed",
  "store_silent",
  "store_went_back",
  "store_generation_stale",
]);

/** Refusals that nothing but an operator ends. */
const FENCES: ReadonlySet<ErrorCode> = new Set([
  "store_sealed",
  "store_moved",
  "store_forked",
  "store_replaced",
  "store_emptied",
  "operator_needed",
  "store_corrupt",
  "store_unknown_schema",
  "store_epoch_unreadable",
  "store_evicts",
  "store_too_old",
  "store_copied",
  "store_locked",
  "run_space_exhausted",
]);

export type GuardState = Pick<GuardAnswer, "state" | "code" | "sinceMs" | "explanation">;

export function isDoubt(error: unknown): error is CoordinatorError {
  return DOUBTS.has((error as CoordinatorError).code);
}

export function openSince(sinceMs: number): GuardState {
  return { state: "open", code: null, sinceMs, explanation: "runs are leased" };
}

/** Whether a step that was done ends the state: of a run space at its end a touch still succeeds, and nothing is leased. */
export function endsState({ code }: GuardState, { highWaterMark }: RecordAfter): boolean {
  return code !== null && !(code === "run_space_exhausted" && highWaterMark >= RUN_MAX);
}

/** The state after a refusal; the same state keeps its beginning. */
export function stateAfter(error: CoordinatorError, before: GuardState, nowMs: number): GuardState {
  const { code, message } = error;
  // Said only by a store against which nothing else stands: the doubt, or the fence, is over.
  if (code === "line_reached") return before.state === "open" ? before : openSince(nowMs);
  // The recovery that is tried now ends it, or fails for a cause of its own.
  if (before.state === "fenced" && isDoubt(error)) return before;
  const state = FENCES.has(code) ? "fenced" : "in_doubt";
  const sinceMs = before.code === code ? before.sinceMs : nowMs;
  return { state, code, sinceMs, explanation: message };
}

export interface RecoveryDone {
  readonly atMs: number;
  /** What the recovery settled. */
  readonly code: ErrorCode;
  readonly skippedRunCount: number;
  /** How long before the recovery the record was written last, as far as this coordinator has seen. */
  readonly idleMs: number;
}

export function recoveryAnswerOf({ atMs, code, skippedRunCount, idleMs }: RecoveryDone): RecoveryAnswer {
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
