/** Judges a step, and tells of the runs that are burnt because the judgement went against it. */
import type { Log } from "../log.js";
import type { Outcome, StepCommand } from "../store.js";
import type { Bounds } from "./bounds.js";
import { mustBeFresh, mustCount } from "./judge.js";

interface BurnOptions {
  readonly namespace: string;
  readonly now: () => number;
  readonly bounds: Bounds;
  readonly log: Log;
}

/** @throws CoordinatorError all of `mustCount` and `mustBeFresh`: nothing of the step may be used, and its runs are burnt. */
export function mustNotBeBurnt(
  outcome: Outcome,
  command: StepCommand,
  seenLedgerId: number,
  { namespace, now, bounds, log }: BurnOptions,
): void {
  const { runCount } = outcome;
  try {
    mustCount(outcome, command);
    if (runCount > 0) mustBeFresh(outcome, seenLedgerId, now(), bounds.epsMs);
  } catch (error) {
    if (runCount > 0) log.warn({ namespace, runCount, reason: (error as { code?: string }).code }, "burn");
    throw error;
  }
}
