/** Compares what became of a step with what a decision says of it. */
import { isDeepStrictEqual } from "node:util";
import { expect } from "vitest";
import { CoordinatorError } from "../src/errors.js";
import type { Outcome, RecordAfter, StepCommand } from "../src/guard/commands.js";
import type { Written } from "../src/guard/decide.js";
import { isRefusal, type Refusal, refused } from "../src/guard/refusals.js";
import { type Case, clockOf, decidedOn, instantsOf, situationOf, untilConnected } from "./apply-tables.js";
import { NAMESPACE } from "./commands-for-test.js";
import { stepsOn } from "./steps-for-test.js";

/** What became of a step. */
async function answerOf(step: () => Promise<Outcome>): Promise<object> {
  try {
    const { after, runCount, check } = await untilConnected(step);
    const { epoch, generation } = after;
    if (check !== undefined) expect(check).toEqual({ role: "master", epoch, generation });
    return { after: withoutTimes(after), runCount };
  } catch (error) {
    if (error instanceof CoordinatorError) return errorFields(error);
    throw error;
  }
}

function expectedOf(decided: Written | Refusal): object {
  if (isRefusal(decided)) return errorFields(refused(decided.code, decided.detail, NAMESPACE));
  const { storeId, version, highWaterMark, changedAtMs, epoch, generation, nodeCount } = decided.record;
  const after = { storeId, version, highWaterMark, changedAtMs, epoch, generation, nodeCount };
  return { after: withoutTimes(after), runCount: decided.runCount };
}

/** The record is decided at one instant and written at a later one. A recovered store has a time for its generation. */
function withoutTimes({ generation, ...after }: RecordAfter): object {
  return { ...after, changedAtMs: 0, generation: generation > 1.79e12 && generation < 1.9e12 ? "a time" : generation };
}

function errorFields({ code, message, retryAfterMs, generation }: CoordinatorError): object {
  return { code, message, retryAfterMs, generation };
}

/**
 * Does the step, default as a coordinator that has seen nothing yet, and expects what a decision on the state says, at the instant that the
 * store looked at it. Adds to `seen` the step that was done, or word and detail of the refusal.
 */
export async function expectDecided(
  one: Case,
  seen: Set<string>,
  step: (command: StepCommand) => Promise<Outcome> = stepsOn(one.table.store, NAMESPACE, clockOf(one)),
): Promise<void> {
  const { table } = one;
  const contents = await table.contents();
  const before = await table.found();
  const answer = await answerOf(() => step(one.command));
  const after = await table.found();
  const possible: object[] = [];
  for (const timeMs of instantsOf(before, after)) {
    const decided = decidedOn(one, before, timeMs);
    seen.add(isRefusal(decided) ? `${decided.code} ${decided.detail}` : one.command.step);
    possible.push(expectedOf(decided));
    if (!isDeepStrictEqual(possible.at(-1), answer)) continue;
    if (isRefusal(decided)) expect(await table.contents(), "a refusal changes nothing").toEqual(contents);
    return;
  }
  expect(answer, situationOf(one, before)).toEqual(possible[0]);
}
