/** The state of a namespace's run space, from its record and its newest lease. Pure. */
import { SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import type { LedgerEntry, StatusAnswer } from "@callnumber/protocol/wire";
import { firstRunOfVersion, runUseOf } from "./run-space.js";
import type { NamespaceRecord } from "./stores/store.js";

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
