/**
 * How much of a version's run space is used, how fast it goes and when it ends: figures for operators, from the record and the newest
 * leases. Pure.
 */
import { RUN_MAX, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import type { CapacityAnswer } from "@callnumber/protocol/operator";
import { holderUses } from "./capacity-holders.js";
import { type Look, lookSince, runCountOf } from "./capacity-look.js";
import { lineAt, whenLineReaches } from "./guard/line.js";
import { firstRunOfVersion, type RateWindow, ratesOf, runsFrom } from "./status.js";
import type { NamespaceRecord } from "./store.js";
import { parseStoreId } from "./store-id.js";

/** What is true of the record alone. */
export type RunSpace = Pick<
  CapacityAnswer,
  "runsUsed" | "runsLeft" | "usedShare" | "callNumbersLeft" | "roomRuns" | "lineRunsPerSecond" | "lineEndsAtMs"
>;

export function runSpaceOf(record: NamespaceRecord, nowMs: number): RunSpace {
  const { storeId, version, highWaterMark } = record;
  const id = parseStoreId(storeId);
  if (id === undefined) throw new Error(`broken invariant: "${storeId}" is no store id`);
  const firstRun = firstRunOfVersion(record);
  const runsUsed = highWaterMark - firstRun + 1;
  const runsLeft = RUN_MAX - highWaterMark;
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

/**
 * The figures without the alarms. `oldest` as for the status, for those windows that the look does not reach back to: there, runs that
 * were passed over count too.
 */
export function capacityOf(
  record: NamespaceRecord,
  look: Look,
  windows: readonly RateWindow[],
  nowMs: number,
): Omit<CapacityAnswer, "alarms"> {
  const { namespace, version, highWaterMark } = record;
  const used = windows.map(({ windowMs, oldest }) => {
    const fromMs = nowMs - windowMs;
    const isWhole = look.completeFromMs <= fromMs;
    return { windowMs, runs: isWhole ? runCountOf(lookSince(look, fromMs).leases) : runsFrom(oldest, record) };
  });
  return {
    namespace,
    version,
    highWaterMark,
    ...runSpaceOf(record, nowMs),
    rates: ratesOf(record, used, nowMs),
    lookedAt: { leaseCount: look.leases.length, fromMs: look.leases.at(-1)?.leasedAtMs ?? null },
    holders: holderUses(look.leases, nowMs),
  };
}
