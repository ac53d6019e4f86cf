/** What `move` says of what it found, what it will do, and what an operator does next. */
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { DEFAULT_BOUNDS } from "../guard/bounds.js";
import type { Moved, MovePlan } from "../operator/move.js";
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
  done: "done already: nothing is left to do",
};

/** A namespace, as it was found. */
export function planInWords(plan: MovePlan, { from, to }: Way, nodeCount: number): string {
  const { namespace, stage, source, storeId, ledger } = plan;
  const { version, highWaterMark } = source;
  const found = [
    `namespace ${namespace}, store id ${source.storeId}`,
    "found",
    `  the old store      ${from}`,
    `                     version ${version}, mark ${grouped(highWaterMark)}, written ${instant(source.changedAtMs)}`,
    `  the new store      ${to}`,
    `                     ${plan.target === undefined ? "no such namespace" : `store id ${storeId}`}`,
    `  the move           ${STAGES[stage]}`,
  ];
  if (ledger === undefined) return found.join("\n");
  const { leaseCount, copiedCount } = ledger;
  return [
    ...found,
    "moving",
    "  1 seals the old store permanently: it leases no more",
    `  2 copies ${grouped(leaseCount - copiedCount)} of ${grouped(leaseCount)} leases, and compares all`,
    `  3 makes the new store, with a store id of its own and version ${version + 1} of the call numbers, for ${nodeCount} data ${nodeCount === 1 ? "node" : "nodes"}`,
    "and costs",
    `  a version          ${grouped(RUN_MAX - highWaterMark)} runs of version ${version} are never leased; ${leftAfter(version + 1)}`,
    "  a store id         importers that pin one (expectedStoreId) stop until they are given the new one",
    "  time               nothing is leased until a coordinator has claimed the new store; importers go on with the runs in hand",
  ].join("\n");
}

function leftAfter(version: number): string {
  const left = VERSION_MAX - version;
  return left === 0 ? "no further move is possible" : `${left} more ${left === 1 ? "move is" : "moves are"} possible`;
}

/** A namespace that was moved. */
export function movedInWords({ namespace, storeId, leaseCount, record }: Moved): string {
  const { version, highWaterMark } = record;
  const done =
    leaseCount === undefined
      ? `Namespace ${namespace} was moved before.`
      : `Namespace ${namespace} is moved: ${grouped(leaseCount)} leases are there, the mark is at run ${grouped(highWaterMark)} of version ${version}.`;
  return `${done}\n  new store id       ${storeId}`;
}

/** What is left to an operator. */
export function nextSteps({ from, to }: Way, storeId: string): string {
  const { rate = 1 } = parseStoreId(storeId) ?? {};
  const waitS = Math.ceil((2 * DEFAULT_BOUNDS.epsMs + 1_000 / rate) / 1_000);
  return [
    "Now:",
    `  1 stop every "callnumber serve" on ${from}: it refuses every lease (store_moved)`,
    `  2 start "callnumber serve" on ${to}: it claims the store, and leases about ${waitS} s later`,
    "  3 restart importers with the new store id as expectedStoreId, and the coordinator's URL if it is another one",
    "  4 note the new store id where the old one was noted",
  ].join("\n");
}

/** What stands against leasing from the new store. */
export function findingInWords({ code, what, remedy, override }: Finding): string {
  const way = override === undefined ? "" : `, or accept it: --accept ${override}`;
  return `the new store would not be leased from (${code}): ${what}. Change: ${remedy}${way}`;
}

/** For programs: without the key of the receipts. */
export function planAsJson({ namespace, stage, source, storeId, target, ledger }: MovePlan): object {
  const { version, highWaterMark, generation } = source;
  return {
    namespace,
    stage,
    storeId: source.storeId,
    version,
    highWaterMark,
    generation,
    leaseCount: ledger?.leaseCount ?? null,
    copiedCount: ledger?.copiedCount ?? null,
    newStoreId: stage === "new" ? null : storeId,
    targetPhase: target?.phase ?? null,
  };
}

export function movedAsJson({ namespace, storeId, leaseCount, record }: Moved): object {
  const { version, highWaterMark, generation } = record;
  return {
    namespace,
    storeId,
    version,
    highWaterMark,
    generation,
    leaseCount: leaseCount ?? null,
    wasDone: leaseCount === undefined,
  };
}
