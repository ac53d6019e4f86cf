/**
 * What the list of all namespaces tells of one: enough to see which one needs somebody. One whose record can't be read is listed
 * with its guard's words.
 */

import { RUN_MAX, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import type { CapacityAnswer, NamespaceDescription } from "@callnumber/protocol/operator";
import type { LedgerEntry, StatusAnswer } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { ceilingAt, whenCeilingReaches } from "../guard/ceiling.js";
import { activeSince, type GuardState, nextState } from "../guard/guard-state.js";
import type { NamespaceGuard } from "../guard/namespace-guard.js";
import type { NamespaceRecord, Store } from "../store.js";
import { parseStoreId } from "../store-id.js";

interface Described {
  readonly namespace: string;
  readonly store: Store;
  readonly guardOf: () => Promise<NamespaceGuard>;
  /** Why the last touch found no guard; undefined where it found one. */
  readonly refused: GuardState | undefined;
  /** What the preflight has against leasing; undefined for nothing. */
  readonly findingOf: () => GuardState | undefined;
  readonly nowMs: number;
}

/** Undefined for a name without a record: it stands before its namespace, or has outlived one that nobody remembers. */
export async function describedNamespace(asked: Described): Promise<NamespaceDescription | undefined> {
  const { namespace, store, guardOf, refused, findingOf, nowMs } = asked;
  let guard: NamespaceGuard | undefined;
  try {
    guard = await guardOf();
    const record = await guard.readRecord();
    const { labels, fault } = await labelsOf(store, namespace);
    const judged = (guard.state.state === "open" ? findingOf() : undefined) ?? guard.state;
    const explanation = fault === undefined ? judged.explanation : `${judged.explanation}; but ${fault}`;
    return { namespace, labels, record: told(record, nowMs), guard: { ...judged, explanation } };
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    if (error.code === "namespace_not_initialised") return undefined;
    const judged = nextState(error, guard?.state ?? refused ?? activeSince(nowMs), nowMs);
    return { namespace, labels: {}, record: null, guard: judged };
  }
}

/** Nothing is leased by labels: one that can't be read hides nothing else. */
async function labelsOf(
  store: Store,
  namespace: string,
): Promise<{ readonly labels: NamespaceDescription["labels"]; readonly fault: string | undefined }> {
  try {
    return { labels: await store.readDescription(namespace), fault: undefined };
  } catch (error) {
    if (error instanceof CoordinatorError && error.code === "store_corrupt")
      return { labels: {}, fault: error.message };
    throw error;
  }
}

function told(record: NamespaceRecord, nowMs: number): NamespaceDescription["record"] {
  const { storeId, version, highWaterMark } = record;
  const { runsUsed, runsLeft, lineRunsPerSecond } = runSpaceOf(record, nowMs);
  return {
    storeId,
    version,
    firstRun: firstRunOfVersion(record),
    highWaterMark,
    runsUsed,
    runsLeft,
    lineRunsPerSecond,
  };
}

/** What is true of the record alone. */
export type RunSpace = Pick<
  CapacityAnswer,
  "runsUsed" | "runsLeft" | "usedShare" | "callNumbersLeft" | "roomRuns" | "lineRunsPerSecond" | "lineEndsAtMs"
>;

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
    roomRuns: Math.min(Math.max(ceilingAt(id, version, nowMs) - highWaterMark, 0), runsLeft),
    lineRunsPerSecond: id.rate,
    lineEndsAtMs: whenCeilingReaches(id, version, RUN_MAX),
  };
}

type Began = Pick<NamespaceRecord, "version" | "firstVersion" | "firstRun">;

/** Run 0 of a version is never leased; the first version may begin above run 1, for an archive that holds numbers already. */
export function firstRunOfVersion({ version, firstVersion, firstRun }: Began): number {
  return version === firstVersion ? firstRun : 1;
}

/** Used: leased or passed over, so that none of them is ever leased again. */
export function runUseOf(record: Began & Pick<NamespaceRecord, "highWaterMark">): {
  readonly runsUsed: number;
  readonly runsLeft: number;
} {
  const { highWaterMark } = record;
  return { runsUsed: highWaterMark - firstRunOfVersion(record) + 1, runsLeft: RUN_MAX - highWaterMark };
}

export function statusOf(
  record: NamespaceRecord,
  newest: LedgerEntry | undefined,
): Omit<StatusAnswer, "store" | "coordinator" | "guard" | "rates"> {
  const { namespace, storeId, version, highWaterMark } = record;
  const { runsUsed, runsLeft } = runUseOf(record);
  return {
    namespace,
    storeId,
    version,
    firstRun: firstRunOfVersion(record),
    highWaterMark,
    runsUsed,
    runsLeft,
    callNumbersLeft: runsLeft * SEQUENCE_COUNT,
    lastLeaseAtMs: newest?.leasedAtMs ?? null,
  };
}
