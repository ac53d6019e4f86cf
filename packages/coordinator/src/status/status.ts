/**
 * What the list of all namespaces tells of one: enough to see which one needs somebody. One whose record can't be read is listed
 * with its guard's words.
 */
import type { NamespaceDescription } from "@callnumber/protocol/operator";
import { CoordinatorError } from "../errors.js";
import type { NamespaceGuard } from "../guard/namespace-guard.js";
import { type GuardState, openSince, stateAfter } from "../guard/guard-state.js";
import { firstRunOfVersion, runSpaceOf } from "../run-space.js";
import type { NamespaceRecord, Store } from "../store.js";

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
    const judged = stateAfter(error, guard?.state ?? refused ?? openSince(nowMs), nowMs);
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
