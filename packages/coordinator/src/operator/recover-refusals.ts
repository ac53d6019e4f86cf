/** Why a planned recovery can't be carried out where the clock line stands now, and what the operator does then. */
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { commandLine } from "@callnumber/protocol/operator";
import { ledgerIdOf, runOfLedgerId } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { PHASES } from "../guard/record.js";
import { greatestOf, idOf, type RecoverPlan } from "./recover-plan.js";

/** The line of the version has ended, or something that is known lies above the line. Undefined when neither is so. */
export function refusalOf(plan: RecoverPlan): CoordinatorError | undefined {
  return endRefusalOf(plan) ?? floorRefusalOf(plan);
}

function endRefusalOf(plan: RecoverPlan): CoordinatorError | undefined {
  const { namespace, floors, target } = plan;
  if (target < RUN_MAX) return undefined;
  const { version } = runOfLedgerId(idOf(greatestOf(floors)));
  return new CoordinatorError(
    "run_space_exhausted",
    `the clock line of version ${version} has reached its end: no mark below it lies above everything that may have been leased. Nothing was ` +
      `changed in namespace "${namespace}". ${wayOnFrom(version, plan)}`,
  );
}

/** The verb steps from a record that it can read, and that is not sealed; else a floor says where to go on. */
function wayOnFrom(version: number, { namespace, found, again }: RecoverPlan): string {
  if (version >= VERSION_MAX) return "It is the last version: what comes next is another namespace, or another layout";
  const next = version + 1;
  const command =
    found !== undefined && found.phase !== PHASES.sealed
      ? commandLine("advance-version", namespace)
      : again({ floor: ledgerIdOf(next, 0) });
  return `Continue in version ${next}, above all that it may have leased: \`${command}\``;
}

function floorRefusalOf({
  namespace,
  storeId,
  floors,
  target,
  possibleAtMs,
}: RecoverPlan): CoordinatorError | undefined {
  const floor = greatestOf(floors);
  if (possibleAtMs === null || floor === undefined) return undefined;
  const { version, run } = runOfLedgerId(floor.ledgerId);
  const ofVersion = version === 0 ? "" : ` of version ${version}`;
  return new CoordinatorError(
    "operator_needed",
    `${floor.from} tells of run ${run}${ofVersion}, above the clock line of store id ${storeId}, which is at run ${target} now. No right clock ` +
      `leased it from that store. Nothing was changed in namespace "${namespace}". If a clock was ahead when it was leased, or is behind now: set ` +
      `the clocks right; with them as they are, recovering is possible from ${new Date(possibleAtMs).toISOString()} on. If it is a run of ` +
      "another store: recover that one",
  );
}
