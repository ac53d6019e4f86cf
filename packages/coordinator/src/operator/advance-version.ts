/**
 * Advance the version: when the run space of a version is at its end, numbering goes on at run 1 of the next one. First looks and plans,
 * changes nothing; then does one step, which refuses whatever a lease is refused for, and whatever else could repeat a run.
 * May be typed beside coordinators that run: they notice by themselves.
 * Guarantees: G12 (docs/guarantees.md).
 */
import { VERSION_MAX } from "@callnumber/protocol/codec";
import { commandLine } from "@callnumber/protocol/operator";
import { ledgerIdOf } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { type Checkpoint, CORRUPT } from "../guard/checkpoint.js";
import { PHASES } from "../guard/record.js";
import { refused } from "../guard/refusals.js";
import { freshNonce, verifyOutcome } from "../guard/verify-outcome.js";
import { USED_SHARES } from "../status/alarms.js";
import { runSpaceOf } from "../status/status.js";
import type { AdvanceStep, NamespaceRecord, Outcome } from "../store.js";
import type { OperatorOptions } from "./move.js";

export interface AdvanceOptions extends OperatorOptions {
  /** The operator gives up what is left of the version. */
  readonly isBeforeItsEnd: boolean;
  /** The operator has looked at the clock: a long silence was only that. */
  readonly isClockChecked: boolean;
}

export interface AdvancePlan {
  readonly namespace: string;
  readonly storeId: string;
  /** The record as found. */
  readonly found: NamespaceRecord;
  readonly checkpoint: Checkpoint | typeof CORRUPT | undefined;
  /** Of the run space of the version, 0 to 1. */
  readonly usedShare: number;
  /** Runs of the version that will never be leased because of it. */
  readonly givenUpRunCount: number;
  readonly givenUpCallNumberCount: number;
  /** When the clock line reaches the last run of the version: only then can it be done. */
  readonly lineEndsAtMs: number;
  /** The store is known to be in doubt: the version can't be leased from any more in any case. */
  readonly isInDoubt: boolean;
}

/**
 * Looks at what is there. Changes nothing.
 * @throws CoordinatorError `store_replaced` when the witness knows another store; whatever the store says of the record.
 */
export async function planAdvance({
  store,
  namespace,
  checkpointFile,
  now = Date.now,
}: AdvanceOptions): Promise<AdvancePlan> {
  const found = await store.readNamespace(namespace);
  const checkpoint = checkpointFile.read();
  const { storeId, version, highWaterMark, generation, phase } = found;
  const remembered = checkpoint === CORRUPT ? undefined : checkpoint;
  if (remembered !== undefined && remembered.storeId !== storeId) throw refused("FOREIGN", storeId, namespace);
  const { usedShare, runsLeft, callNumbersLeft, lineEndsAtMs } = runSpaceOf(found, now());
  const hasGoneBack =
    remembered !== undefined &&
    (remembered.ledgerId > ledgerIdOf(version, highWaterMark) || remembered.generation > generation);
  return {
    namespace,
    storeId,
    found,
    checkpoint,
    usedShare,
    givenUpRunCount: runsLeft,
    givenUpCallNumberCount: callNumbersLeft,
    lineEndsAtMs,
    isInDoubt: phase === PHASES.claimed || checkpoint === CORRUPT || hasGoneBack,
  };
}

/** Why the plan is not to be carried out now; undefined when it may be. */
export function refusalOf(
  { namespace, found, usedShare, givenUpRunCount, lineEndsAtMs, isInDoubt }: AdvancePlan,
  { isBeforeItsEnd, now = Date.now }: Pick<AdvanceOptions, "isBeforeItsEnd" | "now">,
): CoordinatorError | undefined {
  const { version } = found;
  const where = `namespace "${namespace}" is at version ${version}${version > 0 ? " already" : ""}`;
  if (version >= VERSION_MAX) {
    return new CoordinatorError(
      "run_space_exhausted",
      `${where}, the last one: there is no next version. Nothing was changed. What comes next is another namespace, or another layout`,
    );
  }
  if (lineEndsAtMs > now()) {
    return new CoordinatorError(
      "version_not_ended",
      `${where}, whose clock line reaches its last run at ${new Date(lineEndsAtMs).toISOString()}; nothing of version ${version + 1} can be ` +
        `leased before. Nothing was changed. Until then leasing goes on in version ${version}, as fast as the line allows; then type it again`,
    );
  }
  if (usedShare >= USED_SHARES.runs_used_95 || isInDoubt || isBeforeItsEnd) return undefined;
  return new CoordinatorError(
    "version_not_ended",
    `${where}, and of that ${(usedShare * 100).toFixed(1)} % are used: ${givenUpRunCount} runs would be given up for ever. Nothing was ` +
      `changed. To give them up, run \`${commandLine("advance-version", namespace, { "before-its-end": true })}\``,
  );
}

/**
 * Does what was planned.
 * @throws CoordinatorError every refusal of a lease but the doubts that a jump settles; `claim_raced` when the version changed since it was
 *   planned; `version_not_ended`; `quorum_missing`: done on this server, and not known to be on the others.
 */
export async function advanceVersion(options: AdvanceOptions, plan: AdvancePlan): Promise<Outcome> {
  const { store, namespace, checkpointFile, isClockChecked } = options;
  const { found, checkpoint } = plan;
  const command: AdvanceStep = {
    step: "advance",
    storeId: plan.storeId,
    nonce: freshNonce(),
    isSilenceAccepted: isClockChecked,
    version: found.version,
    ...floorOf(found, checkpoint),
  };
  const outcome = await store.step(namespace, command);
  verifyOutcome(outcome, command);
  const { storeId, version, highWaterMark, generation, nodeCount } = outcome.after;
  const noted = Math.max(ledgerIdOf(version, highWaterMark), command.floor);
  checkpointFile.note({ storeId, ledgerId: noted, generation, nodeCount });
  return outcome;
}

/** A memory that can't be read any more might have known better than the store: the store is doubted. */
function floorOf(
  { generation }: NamespaceRecord,
  checkpoint: AdvancePlan["checkpoint"],
): Pick<AdvanceStep, "floor" | "generationMin"> {
  if (checkpoint === CORRUPT) return { floor: 0, generationMin: generation + 1 };
  return { floor: checkpoint?.ledgerId ?? 0, generationMin: checkpoint?.generation ?? 0 };
}
