/** Judges a step that granted something; and tells of the runs that are burnt because the judgement went against it. */
import type { Log } from "../log.js";
import type { Outcome, StepCommand } from "../store.js";
import { mustBeFresh, mustCount } from "./judge.js";

/** What the step is held against. */
export interface SeenBefore {
  readonly ledgerId: number;
  readonly nowMs: number;
  readonly epsMs: number;
}

/** @throws CoordinatorError all of `mustCount` and `mustBeFresh`: nothing of the step may be used, and its runs are burnt. */
export function mustNotBeBurnt(
  outcome: Outcome,
  command: StepCommand,
  seen: SeenBefore,
  { log, namespace }: { readonly log: Log; readonly namespace: string },
): void {
  try {
    mustCount(outcome, command);
    if (outcome.runCount > 0) mustBeFresh(outcome, seen.ledgerId, seen.nowMs, seen.epsMs);
  } catch (error) {
    const { runCount } = outcome;
    if (runCount > 0) log.warn({ namespace, runCount, reason: (error as { code?: string }).code }, "burn");
    throw error;
  }
}
