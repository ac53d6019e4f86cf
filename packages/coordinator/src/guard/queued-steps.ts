/** The steps of one namespace that wait: whose callers are still there, and which of them may share a change. */
import type { Outcome, StepCommand } from "./commands.js";

/** A larger change would block the store for other clients. */
const BATCH_STEPS_MAX = 256;

/** Throws once the caller of a step has left. */
export type StepSignal = Pick<AbortSignal, "throwIfAborted">;

export interface QueuedStep {
  readonly command: StepCommand;
  readonly signal: StepSignal | undefined;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

/** Of the steps that wait, how many the next change is for. */
export function batchLengthOf([first, ...others]: readonly QueuedStep[]): number {
  const end = isShareable(first) ? others.findIndex((other) => !canShare(other, first)) : 0;
  return Math.min(1 + (end === -1 ? others.length : end), BATCH_STEPS_MAX);
}

/** Rejects a step whose caller has left. */
export function isWanted({ signal, reject }: QueuedStep): boolean {
  try {
    signal?.throwIfAborted();
    return true;
  } catch (error) {
    reject(error);
    return false;
  }
}

export function isShareable(step: QueuedStep | undefined): step is QueuedStep {
  return step?.command.step === "lease" || step?.command.step === "heartbeat";
}

function canShare(step: QueuedStep, first: QueuedStep): boolean {
  return (
    isShareable(step) &&
    step.command.storeId === first.command.storeId &&
    step.command.isSilenceAccepted === first.command.isSilenceAccepted
  );
}
