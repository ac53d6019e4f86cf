/**
 * Steps of the guard as calls of scripts, and the replies to them. One script for each step, but one for adjacent leases of a
 * batch: as if each had come alone, one after the other, with nothing in between. Pure.
 * Guarantees: G4 (docs/guarantees.md).
 */
import type { Bounds } from "../../guard/bounds.js";
import { isRefusalCode, type Refusal, refusal } from "../../guard/refusals.js";
import type { LeaseStep, Outcome, RecordAfter, StepCommand } from "../store.js";
import { holderJsonOf } from "../stored-shapes.js";
import { stringsIn, wholesIn } from "./replies.js";

interface NamespaceStep {
  readonly namespace: string;
  readonly command: StepCommand;
}

/** The steps of one script call: one step, or several leases. */
export type StepCall<Step extends NamespaceStep = NamespaceStep> = readonly [Step, ...Step[]];

/** The reply to one step. */
export type StepReply = Pick<Outcome, "after" | "runCount" | "movedAside"> | Refusal;

/** The calls of a batch, in its order: adjacent leases from the same store, under the same condition, share one. */
export function callsOf<Step extends NamespaceStep>(batch: readonly Step[]): readonly StepCall<Step>[] {
  const calls: [Step, ...Step[]][] = [];
  for (const step of batch) {
    const last = calls.at(-1);
    if (last !== undefined && canShareCall(step, last[0])) last.push(step);
    else calls.push([step]);
  }
  return calls;
}

function canShareCall({ namespace, command }: NamespaceStep, first: NamespaceStep): boolean {
  return (
    command.step === "lease" &&
    first.command.step === "lease" &&
    namespace === first.namespace &&
    command.storeId === first.command.storeId &&
    command.isSilenceAccepted === first.command.isSilenceAccepted
  );
}

/** The parameters of a call's script, as lua/guard.lua and the script name them. */
export function parametersOf(call: StepCall, nowMs: number, { epsMs, gapMs }: Bounds): readonly (string | number)[] {
  const [{ namespace, command: first }] = call;
  const common = [namespace, first.nonce, first.storeId, nowMs, epsMs, gapMs, first.isSilenceAccepted ? 1 : 0];
  return [...common, ...call.flatMap(({ command }) => ownParametersOf(command))];
}

/** One parameter, as a hundred short ones cost the connection more than all the rest; only the holder, which is last, may contain spaces. */
function leaseParameterOf(command: LeaseStep): string {
  const { nonce, floor, generationMin, runCount, provenRun, leaseNonce } = command;
  return `${nonce} ${floor} ${generationMin} ${runCount} ${provenRun} ${leaseNonce} ${holderJsonOf(command)}`;
}

/** From the eighth parameter on. */
function ownParametersOf(command: StepCommand): readonly (string | number)[] {
  switch (command.step) {
    case "lease":
      return [leaseParameterOf(command)];
    case "heartbeat":
      return [command.floor, command.generationMin];
    case "claim":
      return [command.generation, command.generationMin];
    case "confirm":
      return [command.generation, command.floor];
    case "seal":
      return [command.floor, command.generationMin, command.seal];
    case "recover":
      return [command.floor, command.generationMin, command.nodeCount ?? 0, command.proofKey];
    case "init":
      return [command.nodeCount, command.proofKey];
    case "advance":
      return [command.floor, command.generationMin, command.version];
  }
}

/** The reply to each step of a call; undefined when one of them belongs to another step, or is malformed. */
export function stepRepliesIn(reply: unknown, call: StepCall): StepReply[] | undefined {
  const parts = stringsIn(reply);
  if (parts === undefined) return undefined;
  const { command } = call[0];
  return command.step === "lease" ? leaseRepliesIn(parts, call) : stepReplyIn(parts, command.nonce);
}

const HEAD_LENGTH = 6;

function leaseRepliesIn(parts: readonly string[], call: StepCall): StepReply[] | undefined {
  if (parts.length !== HEAD_LENGTH + call.length) return undefined;
  const [storeId = "", version, changedAtMs, epoch = "", generation, nodeCount] = parts;
  const replies: StepReply[] = [];
  for (const [index, { command }] of call.entries()) {
    const [nonce = "", highWaterMark = "", runCount = "", ...others] = parts[HEAD_LENGTH + index]?.split(" ") ?? [];
    if (nonce !== command.nonce) return undefined;
    // A refusal has its word and detail in their place.
    if (isRefusalCode(highWaterMark)) {
      replies.push(refusal(highWaterMark, runCount));
      continue;
    }
    const numbers = wholesIn({ version, highWaterMark, changedAtMs, generation, nodeCount, runCount });
    if (numbers === undefined || others.length > 0) return undefined;
    replies.push(grantOf({ nonce, storeId, epoch }, numbers));
  }
  return replies;
}

function stepReplyIn(parts: readonly string[], expectedNonce: string): StepReply[] | undefined {
  const [nonce = "", storeId = "", version, highWaterMark, changedAtMs, epoch = "", ...others] = parts;
  const [generation, nodeCount, runCount, ...renamed] = others;
  const numbers = wholesIn({ version, highWaterMark, changedAtMs, generation, nodeCount, runCount });
  if (nonce !== expectedNonce || numbers === undefined) return undefined;
  return [{ ...grantOf({ nonce, storeId, epoch }, numbers), ...(renamed.length > 0 && { movedAside: renamed }) }];
}

type RepliedText = "nonce" | "storeId" | "epoch";
type RepliedNumbers = Omit<RecordAfter, RepliedText> & Pick<Outcome, "runCount">;

function grantOf(texts: Pick<RecordAfter, RepliedText>, { runCount, ...numbers }: RepliedNumbers) {
  return { after: { ...texts, ...numbers }, runCount };
}
