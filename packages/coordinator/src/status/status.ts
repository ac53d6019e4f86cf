/** The state of a namespace for operators: its run space, its status, and its line in the list of all namespaces. */
import { RUN_MAX, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import type { CapacityResponse, NamespaceDescription } from "@callnumber/protocol/operator";
import type { LedgerEntry, StatusResponse } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { firstRunOf, headroomAt, whenCeilingReaches } from "../guard/ceiling.js";
import { activeSince, nextState } from "../guard/guard-state.js";
import type { NamespaceGuard } from "../guard/namespace-guard.js";
import type { NamespaceGuards } from "../guard/namespace-guards.js";
import type { PreflightWatch } from "../guard/preflight.js";
import { parseStoreId } from "../guard/store-id.js";
import type { NamespaceRecord, Store } from "../stores/store.js";

/** What follows from the record alone. */
export type RunSpace = Pick<
  CapacityResponse,
  | "runsUsed"
  | "runsLeft"
  | "usedShare"
  | "callNumbersLeft"
  | "headroomRuns"
  | "ceilingRunsPerSecond"
  | "ceilingEndsAtMs"
>;

/** How much of the run space of a version is used and left, and how far the run ceiling lets leases go. */
export function runSpaceOf(record: NamespaceRecord, nowMs: number): RunSpace {
  const { storeId, version, highWaterMark } = record;
  const id = parseStoreId(storeId);
  if (id === undefined) throw new Error(`broken invariant: "${storeId}" is no store id`);
  const { runsUsed, runsLeft } = runUseOf(record);
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

type Began = Pick<NamespaceRecord, "version" | "firstVersion" | "firstRun">;

/** Used: leased or skipped, so that none of them is ever leased again. */
export function runUseOf(record: Began & Pick<NamespaceRecord, "highWaterMark">): {
  readonly runsUsed: number;
  readonly runsLeft: number;
} {
  const { highWaterMark } = record;
  return { runsUsed: highWaterMark - firstRunOf(record, record.version) + 1, runsLeft: RUN_MAX - highWaterMark };
}

export function statusOf(
  record: NamespaceRecord,
  newest: LedgerEntry | undefined,
): Omit<StatusResponse, "store" | "coordinator" | "guard" | "rates"> {
  const { namespace, storeId, version, highWaterMark } = record;
  const { runsUsed, runsLeft } = runUseOf(record);
  return {
    namespace,
    storeId,
    version,
    firstRun: firstRunOf(record, record.version),
    highWaterMark,
    runsUsed,
    runsLeft,
    callNumbersLeft: runsLeft * SEQUENCE_COUNT,
    lastLeaseAtMs: newest?.leasedAtMs ?? null,
  };
}

interface DescribeOptions {
  readonly namespace: string;
  readonly store: Store;
  readonly guards: Pick<NamespaceGuards, "of" | "refused">;
  readonly preflight: Pick<PreflightWatch, "effectiveState">;
  readonly nowMs: number;
}

/** Nothing else depends on labels: some that can't be read hide nothing else. */
const LABELS_CHANGED =
  'its labels were changed by another program. Set new ones: POST {"labels":{}} to /v1/namespaces/NAMESPACE/labels';

/**
 * Describes a namespace for the list of all; one whose record can't be read by the state of its guard. Undefined for a name that has neither
 * a record nor a checkpoint.
 */
export async function describeNamespace(options: DescribeOptions): Promise<NamespaceDescription | undefined> {
  const { namespace, store, guards, preflight, nowMs } = options;
  const refused = guards.refused().find((one) => one.namespace === namespace)?.guard;
  let guard: NamespaceGuard | undefined;
  try {
    guard = await guards.of(namespace);
    const record = await guard.readRecord();
    const { labels } = await store.readSettings(namespace);
    const state = preflight.effectiveState(namespace, guard.state);
    const explanation = labels === undefined ? `${state.explanation}; but ${LABELS_CHANGED}` : state.explanation;
    return { namespace, labels: labels ?? {}, record: describeRecord(record, nowMs), guard: { ...state, explanation } };
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    if (error.code === "namespace_not_found") return undefined;
    const state = nextState(error, guard?.state ?? refused ?? activeSince(nowMs), nowMs);
    return { namespace, labels: {}, record: null, guard: state };
  }
}

function describeRecord(record: NamespaceRecord, nowMs: number): NamespaceDescription["record"] {
  const { storeId, version, highWaterMark } = record;
  const { runsUsed, runsLeft, ceilingRunsPerSecond } = runSpaceOf(record, nowMs);
  return {
    storeId,
    version,
    firstRun: firstRunOf(record, record.version),
    highWaterMark,
    runsUsed,
    runsLeft,
    ceilingRunsPerSecond,
  };
}
