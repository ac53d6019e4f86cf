/** Whether a namespace leases, as operators see it: from the last refusal to a state, its log lines, and what a recovery cost. */

import { type ErrorCode, nameOfLedgerId, type RecoveryReason, STORE_URL } from "@callnumber/protocol/api";
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import type { GuardStatus, LastRecovery } from "@callnumber/protocol/schemas";
import { CoordinatorError } from "../errors.js";
import type { Log } from "../log.js";
import type { Store } from "../stores/store.js";
import { formatDuration } from "../text.js";
import type { CeilingMonitor } from "./ceiling.js";
import { type Checkpoint, type CheckpointFile, CORRUPT, versionIn, whyNotLatest } from "./checkpoint.js";
import type { Bounds } from "./clocks.js";
import type { RecordAfter } from "./commands.js";
import { refused, runCommand } from "./refusals.js";
import { urlOfPlace } from "./store-id.js";

/** Only an operator ends these. */
const STOPPING_CODES: ReadonlySet<ErrorCode> = new Set([
  "namespace_moved",
  "store_forked",
  "store_id_mismatch",
  "namespace_lost",
  "manual_recovery_required",
  "store_corrupt",
  "store_schema_unsupported",
  "store_epoch_unreadable",
  "store_eviction_enabled",
  "store_version_unsupported",
  "store_copied",
  "store_locked",
  "run_space_exhausted",
]);

export type GuardState = Pick<GuardStatus, "state" | "code" | "reason" | "sinceMs" | "explanation">;

/** The store may have rolled back: the coordinator recovers automatically, by claim and confirm. A conflict is already such a recovery. */
export function isRecoverable(error: unknown): error is CoordinatorError {
  const { code, reason } = error as CoordinatorError;
  return code === "store_recovering" && reason !== "conflict";
}

/** Whether a coordinator can't end it: neither by itself, nor by waiting. */
export function isStopping({ code }: Pick<CoordinatorError, "code">): boolean {
  return STOPPING_CODES.has(code);
}

export function activeSince(sinceMs: number): GuardState {
  return { state: "active", code: null, reason: null, sinceMs, explanation: "runs are leased" };
}

/** Whether a step that succeeded clears the state: after the last run a heartbeat still succeeds, and nothing is leased. */
function clearsState({ code }: GuardState, { highWaterMark }: RecordAfter): boolean {
  return code !== null && !(code === "run_space_exhausted" && highWaterMark >= RUN_MAX);
}

/** Returns the state after a refusal; the same state keeps its time. */
export function nextState(error: CoordinatorError, before: GuardState, nowMs: number): GuardState {
  const { code, reason = null, message } = error;
  // A store refuses so only after all other checks have passed.
  if (code === "run_ceiling_reached") return before.state === "active" ? before : activeSince(nowMs);
  // The recovery that follows succeeds, or fails for a reason of its own.
  if (before.state === "stopped" && isRecoverable(error)) return before;
  const state = isStopping(error) ? "stopped" : "recovering";
  const sinceMs = isSameCause(before, { code, reason }) ? before.sinceMs : nowMs;
  return { state, code, reason, sinceMs, explanation: message };
}

function isSameCause(one: Pick<GuardState, "code" | "reason">, other: Pick<GuardState, "code" | "reason">): boolean {
  return one.code === other.code && one.reason === other.reason;
}

interface GuardedNamespace {
  readonly namespace: string;
  readonly log: Log;
  readonly now: () => number;
}

/** For the words about a recovery. */
interface RecoveredNamespace extends GuardedNamespace {
  readonly store: Pick<Store, "epochCause">;
  readonly bounds: Pick<Bounds, "gapMs">;
}

/** Keeps the state of a namespace, and logs it when its code changes. */
export class StateMonitor {
  readonly #options: GuardedNamespace;
  #state: GuardState;

  constructor(options: GuardedNamespace) {
    this.#options = options;
    this.#state = activeSince(options.now());
  }

  get state(): GuardState {
    return this.#state;
  }

  /** Returns the state after a refusal; undefined for one that no step has met yet: it began at an unknown time. */
  knownState(error: CoordinatorError): GuardState | undefined {
    const state = nextState(error, this.#state, this.#options.now());
    return isSameCause(state, this.#state) ? state : undefined;
  }

  noteRefusal(error: CoordinatorError): void {
    this.#set(nextState(error, this.#state, this.#options.now()));
  }

  noteSuccess(after: RecordAfter): void {
    if (clearsState(this.#state, after)) this.#set(activeSince(this.#options.now()));
  }

  #set(state: GuardState): void {
    const { log, namespace } = this.#options;
    const hasChanged = !isSameCause(state, this.#state);
    this.#state = state;
    if (!hasChanged) return;
    const { code, reason, explanation } = state;
    log[state.state === "active" ? "info" : "warn"]({ namespace, code, reason, explanation }, state.state);
  }
}

/** Turns "no such namespace" into an error about a store that lost it, or is another store. */
export function asNamespaceLost<E>(
  error: E,
  namespace: string,
  checkpoint: Checkpoint | typeof CORRUPT,
): E | CoordinatorError {
  if (!(error instanceof CoordinatorError) || error.code !== "namespace_not_found") return error;
  return namespaceLost(namespace, checkpoint);
}

/** The error for a namespace that has a checkpoint, and that the store does not hold; of a store that was moved, nothing is missed. */
export function namespaceLost(namespace: string, checkpoint: Checkpoint | typeof CORRUPT): CoordinatorError {
  if (checkpoint === CORRUPT) {
    return new CoordinatorError(
      "namespace_lost",
      `namespace "${namespace}" is missing, and its checkpoint is damaged. Nothing is leased. Restore the newest backup of the store. ` +
        `Without one, and with the store id kept with the archive, ${runCommand("recover", namespace, { "store-id": "STORE_ID" })}`,
    );
  }
  const { storeId, ledgerId, movedTo } = checkpoint;
  if (movedTo !== undefined) return refused("MOVED", movedTo, namespace);
  // With its version in any case: nothing may be left that shows it.
  const minRun = nameOfLedgerId(ledgerId, VERSION_MAX);
  return new CoordinatorError(
    "namespace_lost",
    `namespace "${namespace}" is missing, but runs up to ${nameOfLedgerId(ledgerId)} were leased or skipped. Nothing is leased. Restore the newest backup of the store. ` +
      `Without one, ${runCommand("recover", namespace, { "store-id": storeId, "min-run": minRun })}`,
  );
}

/** The error for a namespace that a store does not hold, by what checkpoints have of it; undefined where they have nothing. */
export function whyMissing(namespace: string, file: CheckpointFile): CoordinatorError | undefined {
  const [read, known] = [file.read(), file.readable()];
  if (read === undefined) return moveUnfinished(namespace, file);
  return (known && whyNotLatest(namespace, versionIn(known), file)) ?? namespaceLost(namespace, read);
}

/** The command that shows operators how to remove a namespace from a store. */
export const STRAY_HELP = "`callnumber explain store_id_mismatch`";

/** The error for a namespace that is missing because a move to here was begun and not finished; undefined for no such move. */
export function moveUnfinished(namespace: string, checkpointFile: CheckpointFile): CoordinatorError | undefined {
  const [move] = checkpointFile.movesHere();
  if (move === undefined) return undefined;
  const { from } = move;
  const command = runCommand("move", namespace, { store: urlOfPlace(from), to: STORE_URL, apply: true });
  return new CoordinatorError(
    "namespace_lost",
    `namespace "${namespace}" is not here yet: a move from ${from} to this store was begun and not finished. Nothing is leased. To finish it, ${command}`,
  );
}

/** The error for a store that was made where another one is moved to; undefined where none is. */
export function strayStore(
  namespace: string,
  storeId: string,
  checkpointFile: CheckpointFile,
): CoordinatorError | undefined {
  const moves = checkpointFile.movesHere();
  const [move] = moves;
  if (move === undefined || moves.some((one) => one.storeId === storeId)) return undefined;
  const command = runCommand("move", namespace, { store: urlOfPlace(move.from), to: STORE_URL, apply: true });
  return new CoordinatorError(
    "store_id_mismatch",
    `namespace "${namespace}" is store ${storeId} here, but store ${move.storeId} is moved here from ${move.from}. Nothing is leased. If no archive ` +
      `has numbers of the first, remove it here (${STRAY_HELP}), then ${command}`,
  );
}

/** Turns "no such namespace" into that error, where there is such a move. */
export function asMoveUnfinished<E>(error: E, namespace: string, checkpointFile: CheckpointFile): E | CoordinatorError {
  const isMissing = error instanceof CoordinatorError && error.code === "namespace_not_found";
  return (isMissing ? moveUnfinished(namespace, checkpointFile) : undefined) ?? error;
}

const STATE_SENTENCES: Readonly<Record<GuardState["state"], string>> = {
  active: "The namespace is active",
  recovering: "Leasing waits",
  stopped: "Leasing is stopped",
};

/** Adds to an error what is known without the store: the checkpoint, and the state where there is one. */
export function withCheckpoint(error: unknown, checkpoint: Checkpoint, state?: GuardState): unknown {
  if (!(error instanceof CoordinatorError)) return error;
  const { code, reason, message, retryAfterMs } = error;
  const sentences = [message];
  if (state !== undefined) {
    sentences.push(`${STATE_SENTENCES[state.state]} since ${new Date(state.sinceMs).toISOString()}`);
  }
  // That message includes the checkpoint already.
  if (code !== "namespace_lost") sentences.push(`Checkpoint: ${formatCheckpoint(checkpoint)}`);
  return new CoordinatorError(code, sentences.join(". "), {
    cause: error,
    reason,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

function formatCheckpoint({ storeId, ledgerId, generation }: Checkpoint): string {
  return `store id ${storeId}, run ${nameOfLedgerId(ledgerId)}, generation ${generation}`;
}

/** A recovery that the store has completed. */
interface CompletedRecovery {
  readonly reason: RecoveryReason;
  /** When the record was last written before it, as far as this coordinator has seen. */
  readonly idleSinceMs: number;
  readonly claimed: RecordAfter;
  readonly confirmed: RecordAfter;
}

/** The last recovery of a namespace in this process, for people: its cause, and what it cost. */
export class RecoveryReport {
  readonly #options: RecoveredNamespace;
  readonly #ceiling: CeilingMonitor;
  /** When the record was last written, as far as this coordinator has seen. */
  changedAtMs: number;
  last: LastRecovery | null = null;

  constructor(options: RecoveredNamespace, ceiling: CeilingMonitor, { changedAtMs }: Pick<RecordAfter, "changedAtMs">) {
    this.#options = options;
    this.#ceiling = ceiling;
    this.changedAtMs = changedAtMs;
  }

  note({ reason, idleSinceMs, claimed, confirmed }: CompletedRecovery): void {
    const { log, namespace, now } = this.#options;
    const { storeId, version, highWaterMark: mark, epoch } = confirmed;
    const { highWaterMark: before, changedAtMs } = claimed;
    const skippedRunCount = mark - before;
    const cause = causeOf(reason, changedAtMs - idleSinceMs, this.#options);
    const cost = `skipped ${skippedRunCount.toLocaleString("en-US")} ${skippedRunCount === 1 ? "run" : "runs"}`;
    this.last = { atMs: now(), reason, skippedRunCount, explanation: `${cause}: ${cost}` };
    const waitMs = this.#ceiling.waitMsAfter(confirmed);
    const explanation = `${this.last.explanation}, leasing in ${Math.ceil(waitMs / 1000)} s`;
    log.warn({ namespace, storeId, version, reason, before, mark, epoch, explanation }, "recovered");
  }
}

/** A pause that was long enough on its own comes first: after it, most stores have been restarted, too. */
function causeOf(reason: RecoveryReason, idleMs: number, { store, namespace, bounds }: RecoveredNamespace): string {
  const idle = `Idle for ${formatDuration(idleMs)}`;
  if (reason === "heartbeat_expired") return idle;
  const known = reason === "epoch_changed" ? store.epochCause?.(namespace) : undefined;
  const cause = known ?? RECOVERY_CAUSES[reason];
  return idleMs > bounds.gapMs ? `${idle}, and ${cause}` : cause.charAt(0).toUpperCase() + cause.slice(1);
}

const RECOVERY_CAUSES: Readonly<Record<Exclude<RecoveryReason, "heartbeat_expired">, string>> = {
  epoch_changed: "the store was restarted, promoted or restored, and may have lost its latest runs",
  claimed: "a recovery had begun, by `recover` or by a coordinator that stopped",
  rolled_back: "the store lost runs that were leased",
  generation_stale: "the store was rolled back, or the checkpoint is damaged",
  conflict: "another coordinator recovered it at the same time",
};
