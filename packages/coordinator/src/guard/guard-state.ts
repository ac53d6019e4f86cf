/** Whether a namespace leases, in words: from the last refusal to what an operator reads. */
import { RUN_MAX } from "@callnumber/protocol/codec";
import type { ErrorCode, GuardAnswer } from "@callnumber/protocol/wire";
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
