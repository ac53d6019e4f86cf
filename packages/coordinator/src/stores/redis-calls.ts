/**
 * The calls that steps go to Redis with: a script for each step, but one for leases of the same moment that stand beside each
 * other: as if each had come alone, one after the other, with nothing in between. Knows words and answers, and no connection.
 * Guarantees: G4 (docs/guarantees.md).
 */
import type { Bounds } from "../guard/bounds.js";
import { type Refusal, refusal } from "../guard/refusal.js";
import { isScriptWord } from "../refusals.js";
import type { LeaseStep, RecordAfter, StepCommand } from "../store.js";
import { holderJsonOf } from "./ledger-entry.js";

export interface AskedStep {
  readonly namespace: string;
  readonly command: StepCommand;
}

/** What a script answered to one step. */
export type StepAnswer = { readonly after: RecordAfter; readonly runCount: number } | Refusal;

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
    case "resume":
      return [command.secret, command.mark, command.generation, command.nodeCount ?? 0];
    case "recover":
      return [command.floor, command.generationMin, command.nodeCount ?? 0, command.receiptKey];
    case "init":
      return [command.nodeCount, command.receiptKey];
    case "advance":
      return [command.floor, command.generationMin, command.version];
  }
}

/** What a call's script answered to each of its steps; undefined when one of the answers is to another step. */
export function answersIn(answer: unknown, call: readonly [AskedStep, ...AskedStep[]]): StepAnswer[] | undefined {
  if (!Array.isArray(answer)) return undefined;
  const isLease = call[0].command.step === "lease";
  return isLease ? leaseAnswersIn(answer as string[], call) : stepAnswerIn(answer as string[], call[0].command.nonce);
}

const HEAD_WORDS = 6;

function leaseAnswersIn(words: readonly string[], call: readonly AskedStep[]): StepAnswer[] | undefined {
  if (words.length !== HEAD_WORDS + call.length) return undefined;
  const [storeId = "", version, changedAtMs, epoch = "", generation, nodeCount] = words;
  const shared = {
    storeId,
    version: Number(version),
    changedAtMs: Number(changedAtMs),
    epoch,
    generation: Number(generation),
    nodeCount: Number(nodeCount),
  };
  const answers: StepAnswer[] = [];
  for (const [index, { command }] of call.entries()) {
    const [nonce = "", mark = "", count = ""] = words[HEAD_WORDS + index]?.split(" ") ?? [];
    if (nonce !== command.nonce) return undefined;
    if (isScriptWord(mark)) answers.push(refusal(mark, count));
    else answers.push({ after: { nonce, highWaterMark: Number(mark), ...shared }, runCount: Number(count) });
  }
  return answers;
}

function stepAnswerIn(words: readonly string[], askedNonce: string): StepAnswer[] | undefined {
  const [nonce, storeId = "", version, mark, changedAtMs, epoch = "", generation, nodeCount, runCount] = words;
  if (nonce !== askedNonce) return undefined;
  const after = {
    nonce,
    storeId,
    version: Number(version),
    highWaterMark: Number(mark),
    changedAtMs: Number(changedAtMs),
    epoch,
    generation: Number(generation),
    nodeCount: Number(nodeCount),
  };
  return [{ after, runCount: Number(runCount) }];
}
