/** The state of a namespace for operators: its run space, its status, and its line in the list of all namespaces. */
import { RUN_MAX, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import type { LedgerEntry, NamespaceDescription, StatusResponse } from "@callnumber/protocol/schemas";
import { CoordinatorError } from "../errors.js";
import { firstRunOf, headroomAt, whenCeilingReaches } from "../guard/ceiling.js";
import { activeSince, nextState } from "../guard/guard-state.js";
import type { NamespaceGuard } from "../guard/namespace-guard.js";
import type { NamespaceGuards } from "../guard/namespace-guards.js";
import type { PreflightWatch } from "../guard/preflight.js";
import type { NamespaceRecord } from "../guard/record.js";
import { parseStoreId, type StoreIdFields } from "../guard/store-id.js";

/** What follows from the record alone. */
export type RunSpace = ReturnType<typeof runSpaceOf>;

type Position = Pick<NamespaceRecord, "storeId" | "version" | "highWaterMark">;

/** How much of the run space of a version is used and left, and how far the run ceiling lets leases go. */
export function runSpaceOf({ storeId, version, highWaterMark }: Position, nowMs: number) {
  const id = storeIdFields(storeId);
  // Used: leased or skipped, so that none of them is ever leased again.
  const runsUsed = highWaterMark - firstRunOf(id, version) + 1;
  const runsLeft = RUN_MAX - highWaterMark;
  return {
    runsUsed,
    runsLeft,
    usedShare: runsUsed / (runsUsed + runsLeft),
    callNumbersLeft: runsLeft * SEQUENCE_COUNT,
    headroomRuns: headroomAt(id, version, highWaterMark, nowMs),
    ceilingRunsPerSecond: id.rate,
    ceilingEndsAtMs: whenCeilingReaches(id, version, RUN_MAX),
  };
}

export function storeIdFields(storeId: string): StoreIdFields {
  const id = parseStoreId(storeId);
  if (id === undefined) throw new Error(`broken invariant: "${storeId}" is no store id`);
  return id;
}

/** The parts of a record that status and list have in common. Never the key of its lease proofs. */
function positionOf(record: NamespaceRecord) {
  const { storeId, version, highWaterMark } = record;
  return { storeId, version, firstRun: firstRunOf(record, version), highWaterMark };
}

export function statusOf(
  record: NamespaceRecord,
  newest: LedgerEntry | undefined,
  nowMs: number,
): Omit<StatusResponse, "store" | "coordinator" | "guard" | "rates"> {
  const { runsUsed, runsLeft, callNumbersLeft } = runSpaceOf(record, nowMs);
  const lastLeaseAtMs = newest?.leasedAtMs ?? null;
  return { namespace: record.namespace, ...positionOf(record), runsUsed, runsLeft, callNumbersLeft, lastLeaseAtMs };
}

/** What the state of all namespaces is read from. */
export interface StatusSources {
  readonly guards: NamespaceGuards;
  readonly preflight: PreflightWatch;
  readonly now: () => number;
}

/**
 * Describes a namespace for the list of all; one whose record can't be read by the state of its guard. Undefined for a name that has neither
 * a record nor a checkpoint.
 */
export async function describeNamespace(
  { guards, preflight, now }: StatusSources,
  namespace: string,
): Promise<NamespaceDescription | undefined> {
  const refused = guards.refused().find((one) => one.namespace === namespace)?.guard;
  let guard: NamespaceGuard | undefined;
  try {
    guard = await guards.of(namespace);
    const record = await guard.readRecord();
    const { runsUsed, runsLeft, ceilingRunsPerSecond } = runSpaceOf(record, now());
    return {
      namespace,
      record: { ...positionOf(record), runsUsed, runsLeft, ceilingRunsPerSecond },
      guard: preflight.effectiveState(namespace, guard.state),
    };
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    if (error.code === "namespace_not_found") return undefined;
    const nowMs = now();
    const state = nextState(error, guard?.state ?? refused ?? activeSince(nowMs), nowMs);
    return { namespace, record: null, guard: state };
  }
}
