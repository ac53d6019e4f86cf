/** What `move` says of what it found, what it will do, and what an operator does next. */
import { DEFAULT_BOUNDS } from "../guard/bounds.js";
import { lineAt } from "../guard/line.js";
import type { Moved } from "../operator/move.js";
import type { MovePlan } from "../operator/move-plan.js";
import type { Finding } from "../store.js";
import { parseStoreId } from "../store-id.js";
import { grouped, instant } from "./print.js";

/** Both stores as people read them: without passwords. */
export interface Way {
  readonly from: string;
  readonly to: string;
}

const STAGES: Readonly<Record<MovePlan["stage"], string>> = {
  new: "not begun",
  begun: "begun: the old store is sealed for it; it goes on from there",
  done: "done already: the new store leases; nothing is left to do",
};

/** A namespace, as it was found. */
export function planInWords(plan: MovePlan, { from, to }: Way, nodeCount: number): string {
  const { namespace, stage, source, leaseCount, copiedCount } = plan;
  const found = [
    `namespace ${namespace}, store id ${source.storeId}`,
    "found",
    `  the old store      ${from}`,
    `                     ${grouped(leaseCount)} leases, mark ${grouped(source.highWaterMark)}, written ${instant(source.changedAtMs)}`,
    `  the new store      ${to}`,
    `                     ${plan.target === undefined ? "no such namespace" : "the same store"}, ${grouped(copiedCount)} of the leases`,
    `  the move           ${STAGES[stage]}`,
  ];
  if (stage === "done") return found.join("\n");
  return [
    ...found,
    "moving",
    "  1 seals the old store for good: nothing is leased from it any more, whatever becomes of the new one",
    `  2 copies ${grouped(leaseCount - copiedCount)} leases, and compares all`,
    `  3 makes the record in the new store, with the same store id, for ${nodeCount} data ${nodeCount === 1 ? "node" : "nodes"}`,
    "and costs",
    `  runs               ${grouped(skippedRunCount(plan))} are never leased: the new store begins on the clock line, as after any doubt`,
    `  time               nothing is leased until a coordinator has claimed the new store; importers go on with the runs in hand`,
  ].join("\n");
}

/** A namespace that was moved. */
export function movedInWords({ namespace, leaseCount, record, wasDone }: Moved): string {
  if (wasDone) return `Namespace ${namespace} was moved before: all ${grouped(leaseCount)} leases are there.`;
  return `Namespace ${namespace} is moved: ${grouped(leaseCount)} leases are there, the mark is at run ${grouped(record.highWaterMark)}, generation ${record.generation}.`;
}

/** What is left to an operator. */
export function nextSteps({ from, to }: Way, storeId: string): string {
  const { rate = 1 } = parseStoreId(storeId) ?? {};
  const waitS = Math.ceil((2 * DEFAULT_BOUNDS.epsMs + 1_000 / rate) / 1_000);
  return [
    "Now:",
    `  1 stop every "callnumber serve" on ${from}: it refuses every lease (store_moved)`,
    `  2 start "callnumber serve" on ${to}: it claims the store, and leases about ${waitS} s later`,
    "  3 tell importers the coordinator's address if it is another one; the store id is the same",
    "  4 never start the old store from a backup that was made before this: it would lease the same runs again",
  ].join("\n");
}

/** What stands against leasing from the new store. */
export function findingInWords({ code, what, remedy, override }: Finding): string {
  const way = override === undefined ? "" : `, or accept it: --accept ${override}`;
  return `the new store would not be leased from (${code}): ${what}. Change: ${remedy}${way}`;
}

/** For programs: without the key of the receipts. */
export function planAsJson(plan: MovePlan): object {
  const { namespace, stage, source, target, leaseCount, copiedCount } = plan;
  const { storeId, version, highWaterMark, generation } = source;
  return {
    namespace,
    stage,
    storeId,
    version,
    highWaterMark,
    generation,
    leaseCount,
    copiedCount,
    skippedRunCount: skippedRunCount(plan),
    targetPhase: target?.phase ?? null,
  };
}

export function movedAsJson({ namespace, storeId, leaseCount, record, wasDone }: Moved): object {
  const { version, highWaterMark, generation } = record;
  return { namespace, storeId, version, highWaterMark, generation, leaseCount, wasDone };
}

/** How many runs lie between the mark and the line of a moment from now; 0 when the move is done. */
function skippedRunCount({ source, stage }: MovePlan): number {
  const id = parseStoreId(source.storeId);
  if (id === undefined || stage === "done") return 0;
  const { version, highWaterMark } = source;
  return Math.max(lineAt(id, version, Date.now() + 2 * DEFAULT_BOUNDS.epsMs) - highWaterMark, 0);
}
