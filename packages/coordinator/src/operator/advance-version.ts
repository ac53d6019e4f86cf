/**
 * Advance the version: at the end of a version's run space, numbering continues at run 1 of the next one. The plan changes nothing; one step
 * carries it out, which fails for everything that a lease fails for, and for everything else that could repeat a run. Coordinators may run
 * meanwhile: they notice it.
 * Guarantees: G12 (docs/guarantees.md).
 */

import { commandLine, ledgerIdOf } from "@callnumber/protocol/api";
import { VERSION_MAX } from "@callnumber/protocol/codec";
import { CoordinatorError } from "../errors.js";
import {
  type Checkpoint,
  CORRUPT,
  checkpointOf,
  isAttended,
  isSameCheckpoint,
  movedOn,
  noteDone,
} from "../guard/checkpoint.js";
import { DEFAULT_BOUNDS } from "../guard/clocks.js";
import type { AdvanceStep, Outcome } from "../guard/commands.js";
import type { NamespaceGuardOptions } from "../guard/namespace-guard.js";
import { doStep, refusalOfStep } from "../guard/namespace-steps.js";
import { type NamespaceRecord, PHASES } from "../guard/record.js";
import { refused } from "../guard/refusals.js";
import { USED_SHARES } from "../status/alarms.js";
import { runSpaceOf } from "../status/status.js";

export interface AdvanceOptions extends NamespaceGuardOptions {
  /** The operator gives up what is left of the version. */
  readonly isForcedEarly: boolean;
  /** The operator has checked the clocks: a long heartbeat gap was only that. */
  readonly isClockChecked: boolean;
}

/** What the step found, would write and would give up. */
export interface AdvancePlan {
  readonly namespace: string;
  readonly storeId: string;
  /** The record as found. */
  readonly found: NamespaceRecord;
  readonly checkpoint: Checkpoint | typeof CORRUPT | undefined;
  /** What the step would be refused for now. */
  readonly stopped: CoordinatorError | undefined;
  /** Of the run space of the version, 0 to 1. */
  readonly usedShare: number;
  /** Runs of the version that will never be leased because of it. */
  readonly givenUpRunCount: number;
  readonly givenUpCallNumberCount: number;
  /** When the run ceiling reaches the last run of the version, and the step is possible. */
  readonly ceilingEndsAtMs: number;
  /** The store may have rolled back: nothing of the version can be leased any more. */
  readonly mayHaveRolledBack: boolean;
}

/**
 * Plans the step. Changes nothing.
 * @throws CoordinatorError `store_id_mismatch` when the checkpoint is of another store; `namespace_moved` when one has its move; every error of
 *   `Store.readNamespace`.
 */
export async function planAdvance(options: AdvanceOptions): Promise<AdvancePlan> {
  const { store, namespace, checkpointFile, now = Date.now } = options;
  const found = await store.readNamespace(namespace);
  const checkpoint = checkpointFile.read();
  const { storeId, version, highWaterMark, generation, phase } = found;
  const seen = checkpointFile.readable();
  if (seen !== undefined && seen.storeId !== storeId) throw refused("FOREIGN", storeId, namespace);
  const [movedTo] = checkpointFile.movesOf(storeId);
  if (movedTo !== undefined) throw refused("MOVED", movedTo, namespace);
  const [later] = checkpointFile.laterStoresOf(storeId);
  if (later !== undefined) throw movedOn(namespace, later.storeId);
  const { usedShare, runsLeft, callNumbersLeft, ceilingEndsAtMs } = runSpaceOf(found, now());
  const hasGoneBack =
    seen !== undefined && (seen.ledgerId > ledgerIdOf(version, highWaterMark) || seen.generation > generation);
  const stopped = await refusalOfStep(store, namespace, stepOf({ storeId, found, checkpoint }, options), options);
  return {
    namespace,
    storeId,
    found,
    checkpoint,
    stopped,
    usedShare,
    givenUpRunCount: runsLeft,
    givenUpCallNumberCount: callNumbersLeft,
    ceilingEndsAtMs,
    mayHaveRolledBack: phase === PHASES.claimed || hasGoneBack || isUnknown({ found, checkpoint }, options),
  };
}

/** Returns why the plan must not be carried out now; undefined when it may. */
export function refusalOf(
  { namespace, found, stopped, usedShare, givenUpRunCount, ceilingEndsAtMs, mayHaveRolledBack }: AdvancePlan,
  { isForcedEarly, now = Date.now }: Pick<AdvanceOptions, "isForcedEarly" | "now">,
): CoordinatorError | undefined {
  const { version } = found;
  const where = `namespace "${namespace}" is at version ${version}${version > 0 ? " already" : ""}`;
  if (version >= VERSION_MAX) {
    return new CoordinatorError(
      "run_space_exhausted",
      `${where}, the last one: there is no next version. Nothing was changed. Use another namespace`,
    );
  }
  if (ceilingEndsAtMs > now()) {
    return new CoordinatorError(
      "version_still_active",
      `${where}, whose run ceiling reaches its last run at ${new Date(ceilingEndsAtMs).toISOString()}. No run of version ${version + 1} can ` +
        `be leased before. Nothing was changed. Run the command again then`,
    );
  }
  if (usedShare >= USED_SHARES.runs_used_95 || mayHaveRolledBack || isForcedEarly) return undefined;
  // Then giving up the rest would not help.
  if (stopped?.code === "manual_recovery_required") return stopped;
  return new CoordinatorError(
    "version_still_active",
    `${where}, and of that ${(usedShare * 100).toFixed(1)} % are used: ${givenUpRunCount} runs would be given up permanently. Nothing was ` +
      `changed. To give them up, run \`${commandLine("advance-version", namespace, { "force-early": true })}\``,
  );
}

/**
 * Does what was planned.
 * @throws CoordinatorError as a lease, except for what a recovery ends; `store_recovering` when the version changed since it was
 *   planned; `version_still_active`; `quorum_missing`: done on this server, and not known to be on the others.
 */
export async function advanceVersion(options: AdvanceOptions, plan: AdvancePlan): Promise<Outcome> {
  const { store, namespace, checkpointFile } = options;
  const step = stepOf(plan, options);
  const outcome = await doStep(store, namespace, step, options);
  const { ledgerId, ...after } = checkpointOf(outcome.after);
  noteDone(
    checkpointFile,
    { ...after, ledgerId: Math.max(ledgerId, step.floor) },
    `namespace "${namespace}" is advanced`,
  );
  return outcome;
}

/** Where nothing is known of what the store had, it may have rolled back: its next coordinator must not take this step for another's heartbeat. */
function stepOf(plan: Pick<AdvancePlan, "storeId" | "found" | "checkpoint">, options: AdvanceOptions): AdvanceStep {
  const { storeId, found } = plan;
  const { checkpointFile, isClockChecked: isSilenceAccepted } = options;
  const { ledgerId: floor = 0, generation = 0 } = checkpointFile.readable() ?? {};
  const generationMin = isUnknown(plan, options) ? found.generation + 1 : generation;
  const bounds = { isSilenceAccepted, floor, generationMin, recoveredMin: checkpointFile.recoveredMin(storeId) };
  return { step: "advance", storeId, version: found.version, ...bounds };
}

/** Whether neither a checkpoint nor another coordinator shows what the store had a moment ago, as for a coordinator that starts. */
function isUnknown(
  { found, checkpoint }: Pick<AdvancePlan, "found" | "checkpoint">,
  { store, now = Date.now, bounds = DEFAULT_BOUNDS }: AdvanceOptions,
): boolean {
  if (checkpoint === CORRUPT) return true;
  const isUpToDate = checkpoint !== undefined && isSameCheckpoint(checkpoint, checkpointOf(found));
  return !store.isExclusive && !isUpToDate && !isAttended(found, now(), bounds);
}
