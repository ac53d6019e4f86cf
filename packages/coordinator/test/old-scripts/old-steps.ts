/**
 * The steps of the guard as Redis scripts, each with its rules: those of the release before there was one rule set. For a comparison with
 * it, until that is trusted.
 */
import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";
import type { Bounds } from "../../src/guard/clocks.js";
import type { LeaseStep, RecordAfter, StepCommand } from "../../src/guard/commands.js";
import { isRefusalCode, type Refusal, type RefusalCode, refusal } from "../../src/guard/refusals.js";
import { freshNonce } from "../../src/guard/verify-outcome.js";
import type { NamespaceKeys } from "../../src/stores/redis/scripts.js";
import { holderJsonOf } from "../../src/stores/stored-shapes.js";

export interface OldGrant {
  readonly after: RecordAfter;
  readonly runCount: number;
  readonly movedAside: readonly string[];
}

export interface OldCall {
  readonly redis: Redis;
  readonly keys: NamespaceKeys;
  readonly namespace: string;
  /** One step, or leases of the same moment. */
  readonly commands: readonly [StepCommand, ...StepCommand[]];
  readonly nowMs: number;
  readonly bounds: Pick<Bounds, "epsMs" | "gapMs">;
}

export async function oldStep(call: OldCall): Promise<readonly (OldGrant | Refusal)[]> {
  const { redis, keys, commands } = call;
  const [first] = commands;
  const nonces = commands.map(() => freshNonce());
  const aside = ["record", "ledger", "holders"] as const;
  const renamed = first.step === "recover" ? aside.map((name) => `${keys[name]}:foreign:${nonces[0]}`) : [];
  const names = [keys.record, keys.ledger, keys.holders, ...renamed];
  try {
    const reply = await redis.eval(textOf(first.step), names.length, ...names, ...parametersOf(call, nonces));
    return grantsIn(reply as readonly string[], first.step, nonces);
  } catch (error) {
    const refused = scriptRefusalIn((error as Error).message);
    if (refused === undefined || refused.nonce !== nonces[0]) throw error;
    return commands.map(() => refusal(refused.code, refused.detail));
  }
}

const texts = new Map<string, string>();

function textOf(step: StepCommand["step"]): string {
  const text =
    texts.get(step) ??
    ["record", "guard", step].map((part) => readFileSync(new URL(folderOf(part), import.meta.url), "utf8")).join("\n");
  texts.set(step, text);
  return text;
}

/** Some stay longer, for the fault suite. */
const KEPT = new Set(["record", "guard", "lease", "claim", "confirm"]);

function folderOf(part: string): string {
  return KEPT.has(part) ? `../../../../test/faults/released/${part}.lua` : `./${part}.lua`;
}

function parametersOf({ namespace, commands, nowMs, bounds }: OldCall, nonces: readonly string[]) {
  const [first] = commands;
  const { epsMs, gapMs } = bounds;
  const common = [namespace, nonces[0] ?? "", first.storeId, nowMs, epsMs, gapMs, first.isSilenceAccepted ? 1 : 0];
  const leases = commands.flatMap((command, at) =>
    command.step === "lease" ? [leaseParameterOf(command, nonces[at] ?? "")] : [],
  );
  return [...common, ...(first.step === "lease" ? leases : ownParametersOf(first))];
}

function leaseParameterOf(command: LeaseStep, nonce: string): string {
  const { floor, generationMin, runCount, provenRun, leaseNonce } = command;
  return `${nonce} ${floor} ${generationMin} ${runCount} ${provenRun} ${leaseNonce} ${holderJsonOf(command)}`;
}

function ownParametersOf(command: StepCommand): readonly (string | number)[] {
  switch (command.step) {
    case "lease":
      return [];
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

function grantsIn(parts: readonly string[], step: StepCommand["step"], nonces: readonly string[]) {
  if (step === "lease") {
    const [storeId = "", version, changedAtMs, epoch = "", generation, nodeCount, ...lines] = parts;
    return lines.map((line, at) => {
      const [nonce, mark = "", runCount = ""] = line.split(" ");
      mustBe(nonce, nonces[at]);
      if (isRefusalCode(mark)) return refusal(mark, runCount);
      return grantOf({ storeId, version, mark, changedAtMs, epoch, generation, nodeCount }, runCount, []);
    });
  }
  const [nonce, storeId = "", version, mark, changedAtMs, epoch = "", generation, nodeCount, runCount, ...aside] =
    parts;
  mustBe(nonce, nonces[0]);
  return [grantOf({ storeId, version, mark, changedAtMs, epoch, generation, nodeCount }, runCount, aside)];
}

type Texts = Readonly<Record<"version" | "mark" | "changedAtMs" | "generation" | "nodeCount", string | undefined>>;

function grantOf(
  { storeId, epoch, version, mark, changedAtMs, generation, nodeCount }: Texts & Record<"storeId" | "epoch", string>,
  runCount: string | undefined,
  movedAside: readonly string[],
): OldGrant {
  const after = {
    storeId,
    version: Number(version),
    highWaterMark: Number(mark),
    changedAtMs: Number(changedAtMs),
    epoch,
    generation: Number(generation),
    nodeCount: Number(nodeCount),
  };
  return { after, runCount: Number(runCount), movedAside };
}

function mustBe(nonce: string | undefined, expected: string | undefined): void {
  if (nonce !== expected) throw new Error("the reply of another script");
}

/** The refusal of one of our scripts in an error reply; undefined for any other error. */
function scriptRefusalIn(
  reply: string,
): { readonly code: RefusalCode; readonly nonce: string; readonly detail: string } | undefined {
  const [, code = "", nonce = "", detail = ""] = /^([A-Z]+) (\S+) ?(.*)$/s.exec(reply) ?? [];
  return isRefusalCode(code) ? { code, nonce, detail } : undefined;
}
