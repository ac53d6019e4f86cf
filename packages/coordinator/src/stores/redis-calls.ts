/**
 * The calls that steps go to Redis with: a script for each step, but one for leases of the same moment that stand beside each
 * other: as if each had come alone, one after the other, with nothing in between. Knows words and answers, and no connection.
 * Guarantees: G4 (docs/guarantees.md).
 */
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import type { Bounds } from "../guard/bounds.js";
import { isRefusalCode, type Refusal, refusal } from "../guard/refusals.js";
import type { LeaseStep, Outcome, RecordAfter, StepCommand } from "../store.js";
import { holderJsonOf } from "./ledger-entry.js";
import { wholeIn, wordsIn } from "./redis-answer.js";

export interface AskedStep {
  readonly namespace: string;
  readonly command: StepCommand;
}

/** What a script answered to one step. */
export type StepAnswer = Pick<Outcome, "after" | "runCount" | "movedAside"> | Refusal;

/** The steps of a batch by call, in their order: neighbours that lease from the same store, under the same condition, share one. */
export function callsOf<Asked extends AskedStep>(batch: readonly Asked[]): readonly (readonly [Asked, ...Asked[]])[] {
  const calls: [Asked, ...Asked[]][] = [];
  for (const asked of batch) {
    const last = calls.at(-1);
    if (last !== undefined && goesWith(asked, last[0])) last.push(asked);
    else calls.push([asked]);
  }
  return calls;
}

function goesWith({ namespace, command }: AskedStep, first: AskedStep): boolean {
  return (
    command.step === "lease" &&
    first.command.step === "lease" &&
    namespace === first.namespace &&
    command.storeId === first.command.storeId &&
    command.isSilenceAccepted === first.command.isSilenceAccepted
  );
}

/** The parameters of a call's script, as lua/guard.lua and the script name them. */
export function parametersOf(
  call: readonly [AskedStep, ...AskedStep[]],
  nowMs: number,
  { epsMs, gapMs }: Bounds,
): readonly (string | number)[] {
  const [{ namespace, command: first }] = call;
  const common = [namespace, first.nonce, first.storeId, nowMs, epsMs, gapMs, first.isSilenceAccepted ? 1 : 0];
  return [...common, ...call.flatMap(({ command }) => ownParametersOf(command))];
}

/** One word, as a hundred short ones cost the connection more than all the rest; only the holder, which stands last, may hold spaces. */
function leaseWordOf(command: LeaseStep): string {
  const { nonce, floor, generationMin, runCount, held, leaseNonce } = command;
  return `${nonce} ${floor} ${generationMin} ${runCount} ${held} ${leaseNonce} ${holderJsonOf(command)}`;
}

/** From the eighth parameter on. */
function ownParametersOf(command: StepCommand): readonly (string | number)[] {
  switch (command.step) {
    case "lease":
      return [leaseWordOf(command)];
    case "touch":
      return [command.floor, command.generationMin];
    case "claim":
      return [command.generation, command.generationMin];
    case "confirm":
      return [command.generation, command.floor];
    case "seal":
      return [command.floor, command.generationMin, command.seal];
    case "recover":
      return [command.floor, command.generationMin, command.nodeCount ?? 0, command.receiptKey];
    case "init":
      return [command.nodeCount, command.receiptKey];
    case "advance":
      return [command.floor, command.generationMin, command.version];
  }
}

/** What a call's script answered to each of its steps; undefined when one of the answers is to another step, or can't be one. */
export function answersIn(answer: unknown, call: readonly [AskedStep, ...AskedStep[]]): StepAnswer[] | undefined {
  const words = wordsIn(answer);
  if (words === undefined) return undefined;
  const isLease = call[0].command.step === "lease";
  return isLease ? leaseAnswersIn(words, call) : stepAnswerIn(words, call[0].command.nonce);
}

const HEAD_WORDS = 6;

function leaseAnswersIn(words: readonly string[], call: readonly AskedStep[]): StepAnswer[] | undefined {
  if (words.length !== HEAD_WORDS + call.length) return undefined;
  const [storeId = "", version, changedAtMs, epoch = "", generation, nodeCount] = words;
  const answers: StepAnswer[] = [];
  for (const [index, { command }] of call.entries()) {
    const [nonce = "", mark = "", count = "", ...others] = words[HEAD_WORDS + index]?.split(" ") ?? [];
    if (nonce !== command.nonce) return undefined;
    if (isRefusalCode(mark)) {
      answers.push(refusal(mark, count));
      continue;
    }
    const after = recordAfterIn({ nonce, storeId, version, mark, changedAtMs, epoch, generation, nodeCount });
    const runCount = wholeIn(count);
    if (after === undefined || runCount === undefined || others.length > 0) return undefined;
    answers.push({ after, runCount });
  }
  return answers;
}

function stepAnswerIn(words: readonly string[], askedNonce: string): StepAnswer[] | undefined {
  const [nonce = "", storeId = "", version, mark, changedAtMs, epoch = "", generation, nodeCount, count, ...renamed] =
    words;
  if (nonce !== askedNonce) return undefined;
  const after = recordAfterIn({ nonce, storeId, version, mark, changedAtMs, epoch, generation, nodeCount });
  const runCount = wholeIn(count);
  if (after === undefined || runCount === undefined) return undefined;
  return [{ after, runCount, ...(renamed.length > 0 && { movedAside: renamed }) }];
}

interface AnsweredRecord extends Pick<RecordAfter, "nonce" | "storeId" | "epoch"> {
  readonly version: string | undefined;
  readonly mark: string | undefined;
  readonly changedAtMs: string | undefined;
  readonly generation: string | undefined;
  readonly nodeCount: string | undefined;
}

/** Undefined when one of the numbers is none. */
function recordAfterIn({ nonce, storeId, epoch, ...words }: AnsweredRecord): RecordAfter | undefined {
  const version = wholeIn(words.version, VERSION_MAX);
  const highWaterMark = wholeIn(words.mark, RUN_MAX);
  const changedAtMs = wholeIn(words.changedAtMs);
  const generation = wholeIn(words.generation);
  const nodeCount = wholeIn(words.nodeCount);
  if (
    version === undefined ||
    highWaterMark === undefined ||
    changedAtMs === undefined ||
    generation === undefined ||
    nodeCount === undefined
  )
    return undefined;
  return { nonce, storeId, version, highWaterMark, changedAtMs, epoch, generation, nodeCount };
}
