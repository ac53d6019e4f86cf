/** The run space of a version, as far as a record tells: what is used of it, what is left, and what the clock line lets through. Pure. */
import { RUN_MAX, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import type { CapacityAnswer } from "@callnumber/protocol/operator";
import { lineAt, whenLineReaches } from "./guard/line.js";
import { parseStoreId } from "./store-id.js";
import type { NamespaceRecord } from "./stores/store.js";

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
    roomRuns: Math.min(Math.max(lineAt(id, version, nowMs) - highWaterMark, 0), runsLeft),
    lineRunsPerSecond: id.rate,
    lineEndsAtMs: whenLineReaches(id, version, RUN_MAX),
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
