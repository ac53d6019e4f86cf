/** Whether a namespace leases, in words: from the last refusal to what an operator reads. */
import { RUN_MAX } from "@callnumber/protocol/codec";
import { commandLine } from "@callnumber/protocol/operator";
import { type ErrorCode, type GuardAnswer, type RecoveryAnswer, runOfLedgerId } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import type { Log } from "../log.js";
import type { RecordAfter } from "../store.js";
import type { CeilingMonitor } from "./ceiling.js";
import { type Checkpoint, CORRUPT } from "./checkpoint.js";
import { STOP_AND_RUN } from "./refusals.js";

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

export function isRecoverable(error: unknown): error is CoordinatorError {
  return DOUBTS.has((error as CoordinatorError).code);
}

export function activeSince(sinceMs: number): GuardState {
  return { state: "open", code: null, sinceMs, explanation: "runs are leased" };
}

/** Whether a step that was done ends the state: of a run space at its end a touch still succeeds, and nothing is leased. */
export function clearsState({ code }: GuardState, { highWaterMark }: RecordAfter): boolean {
  return code !== null && !(code === "run_space_exhausted" && highWaterMark >= RUN_MAX);
}

/** The state after a refusal; the same state keeps its beginning. */
export function nextState(error: CoordinatorError, before: GuardState, nowMs: number): GuardState {
  const { code, message } = error;
  // Said only by a store against which nothing else stands: the doubt, or the fence, is over.
  if (code === "line_reached") return before.state === "open" ? before : activeSince(nowMs);
  // The recovery that is tried now ends it, or fails for a cause of its own.
  if (before.state === "fenced" && isRecoverable(error)) return before;
  const state = FENCES.has(code) ? "fenced" : "in_doubt";
  const sinceMs = before.code === code ? before.sinceMs : nowMs;
  return { state, code, sinceMs, explanation: message };
}

/** Of a store that is gone, or holds the namespace no more. */
function recoverLost(namespace: string, { storeId, ledgerId }: Pick<Checkpoint, "storeId" | "ledgerId">): string {
  return commandLine("recover", namespace, { "store-id": storeId, floor: ledgerId });
}

/** A store that held the namespace and holds it no more was namespaceLost, or is another one. */
export function asEmptied(error: unknown, namespace: string, remembered: Checkpoint): unknown {
  if (!(error instanceof CoordinatorError) || error.code !== "namespace_not_initialised") return error;
  return namespaceLost(namespace, remembered);
}

/** For a store that does not hold a namespace which is remembered. */
export function namespaceLost(namespace: string, remembered: Checkpoint | typeof CORRUPT): CoordinatorError {
  if (remembered === CORRUPT) {
    return new CoordinatorError(
      "store_emptied",
      `namespace "${namespace}" is missing, and what is remembered of it is damaged. Nothing is leased. Restore the store. If it is lost, ` +
        `${STOP_AND_RUN}, with the id kept beside the archive, \`${commandLine("recover", namespace, { "store-id": "STORE_ID" })}\``,
    );
  }
  const { storeId, ledgerId } = remembered;
  return new CoordinatorError(
    "store_emptied",
    `namespace "${namespace}" is missing, but run ${ledgerId} was leased from it. Nothing is leased. Restore the store. If it is lost, ` +
      `${STOP_AND_RUN} \`${recoverLost(namespace, { storeId, ledgerId })}\``,
  );
}

const STATE_WORDS: Readonly<Record<GuardState["state"], string>> = {
  open: "The namespace is open",
  in_doubt: "Leasing waits",
  fenced: "Leasing is FENCED",
};

/** The same refusal, with whether the namespace leases, where that is known, and what an operator would else ask the store for. */
export function withMemory(error: unknown, remembered: Checkpoint, state?: GuardState): unknown {
  if (!(error instanceof CoordinatorError)) return error;
  const { code, message, retryAfterMs } = error;
  const told = [
    message,
    ...(state === undefined ? [] : [`${STATE_WORDS[state.state]} since ${new Date(state.sinceMs).toISOString()}`]),
    // Else the message tells it already.
    ...(code === "store_emptied" ? [] : [`Remembered here: ${inWords(remembered)}`]),
  ];
  return new CoordinatorError(code, told.join(". "), {
    cause: error,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

function inWords({ storeId, ledgerId, generation }: Checkpoint): string {
  const { version, run } = runOfLedgerId(ledgerId);
  return `store id ${storeId}, run ${run}${version === 0 ? "" : ` of version ${version}`}, generation ${generation}`;
}

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
  readonly #line: CeilingMonitor;
  /** When the record was written last, as far as it was seen. */
  changedAtMs: number;
  last: RecoveryAnswer | null = null;

  constructor(options: RecoveryReportOptions, line: CeilingMonitor, { changedAtMs }: Pick<RecordAfter, "changedAtMs">) {
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
