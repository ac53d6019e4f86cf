/**
 * Which store is recovered, and whether the logs that were scanned are logs of it. A line counts for the store that it names; but lines
 * of another store of the same name may tell that this one was made after that one was lost, for the same archive. Then the runs of
 * the lost one would be leased again, so an operator must have typed which store it is.
 */
import { runOfLedgerId } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { type Floor, greatestOf, markOf, type RecoverPlan } from "./recover-plan.js";

/**
 * Why logs of other stores stand in the way: none of the logs names the recovered store, or one tells of a run above what recovering
 * would set. Undefined when they don't, or when the operator typed the store id.
 */
export function strangeRefusalOf(plan: RecoverPlan): CoordinatorError | undefined {
  const { namespace, storeId, floors, notTaken, isStoreIdGiven, again } = plan;
  const strange = greatestOf(notTaken);
  if (strange === undefined || isStoreIdGiven) return undefined;
  const isAbove = strange.ledgerId > markOf(plan);
  if (!isAbove && floors.some((floor) => floor.storeId !== undefined)) return undefined;
  const compared = isAbove
    ? `above ${runInWords(markOf(plan))}, where recovering would set the mark of store id ${storeId}`
    : `and no line names store id ${storeId}, which would be recovered`;
  return new CoordinatorError(
    "store_replaced",
    `${strange.from} tells of ${runInWords(strange.ledgerId)} of namespace "${namespace}" in store id ${strange.storeId}, ${compared}. Nothing was ` +
      "changed. If the archive is that store's, its runs would be leased again: restore it; if it is lost, remove namespace " +
      `"${namespace}" here and what the witness folder has of it, then run ` +
      `\`${again({ "store-id": strange.storeId })}\`. If this one is right, and that one's numbers went into another ` +
      `archive: \`${again({ "store-id": storeId })}\``,
  );
}

/** Why the plan may be looked at and not carried out: nothing but the logs says which store it was. */
export function unnamedRefusalOf(plan: RecoverPlan): CoordinatorError | undefined {
  const { namespace, storeId, isStoreIdFromLogs, again } = plan;
  if (!isStoreIdFromLogs) return undefined;
  return new CoordinatorError(
    "operator_needed",
    `nothing but the logs says which store namespace "${namespace}" was, and they may be logs of another one. Nothing was changed. Compare with ` +
      `the id that was kept with the archive. If it is the same, run \`${again({ "store-id": storeId, apply: true })}\``,
  );
}

/** What was not taken and lies above where recovering would set the mark; undefined when nothing does. */
export function leftAboveOf(plan: RecoverPlan): Floor | undefined {
  const strange = greatestOf(plan.notTaken);
  return strange !== undefined && strange.ledgerId > markOf(plan) ? strange : undefined;
}

function runInWords(ledgerId: number): string {
  const { version, run } = runOfLedgerId(ledgerId);
  return version === 0 ? `run ${run}` : `run ${run} of version ${version}`;
}
