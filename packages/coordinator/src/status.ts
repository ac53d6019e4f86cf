/** Capacity and forecast of a namespace, from its record and a few ledger entries. Pure. */
import { RUN_MAX, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { INSTANT_MAX_MS, type LedgerEntry, type StatusAnswer, type UseRate } from "@callnumber/protocol/wire";
import { firstRunOfVersion, runUseOf } from "./run-space.js";
import type { NamespaceRecord } from "./store.js";
import { parseStoreId } from "./store-id.js";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Over which the rate of use is measured. */
const RATE_WINDOWS_MS: readonly number[] = [HOUR_MS, DAY_MS, 7 * DAY_MS];

/** A window, and the oldest lease within it. */
export interface RateWindow {
  readonly windowMs: number;
  readonly oldest: LedgerEntry | undefined;
}

/**
 * The windows that the namespace has lived through, and always the shortest: a longer one would only repeat a shorter one's
 * figures.
 */
export function rateWindowsMsOf(record: NamespaceRecord, nowMs: number): readonly number[] {
  const lifeMs = lifeMsOf(record, nowMs);
  return RATE_WINDOWS_MS.filter((windowMs, index) => index === 0 || windowMs <= lifeMs);
}

export function statusOf(
  record: NamespaceRecord,
  newest: LedgerEntry | undefined,
  windows: readonly RateWindow[],
  nowMs: number,
): Omit<StatusAnswer, "store" | "coordinator" | "guard"> {
  const { namespace, storeId, version, highWaterMark } = record;
  const firstRun = firstRunOfVersion(record);
  const { runsUsed, runsLeft } = runUseOf(record);
  return {
    namespace,
    storeId,
    version,
    firstRun,
    highWaterMark,
    runsUsed,
    runsLeft,
    callNumbersLeft: runsLeft * SEQUENCE_COUNT,
    lastLeaseAtMs: newest?.leasedAtMs ?? null,
    rates: ratesOf(
      record,
      windows.map(({ windowMs, oldest }) => ({ windowMs, runs: runsFrom(oldest, record) })),
      nowMs,
    ),
  };
}

/** The rate of use over each window, and when the run space of the version ends by it. */
export function ratesOf(
  record: NamespaceRecord,
  used: readonly Pick<UseRate, "windowMs" | "runs">[],
  nowMs: number,
): readonly UseRate[] {
  const lifeMs = lifeMsOf(record, nowMs);
  const runsLeft = RUN_MAX - record.highWaterMark;
  return used.map(({ windowMs, runs }) => {
    // A namespace younger than the window is measured over its life, but never over less than a minute.
    const measuredMs = Math.max(Math.min(windowMs, lifeMs), MINUTE_MS);
    return rateOf(runs, windowMs, measuredMs, runsLeft, nowMs);
  });
}

/** Leased or passed over since that lease. Of this version alone: what an advance gave up of the one before was never used. */
export function runsFrom(oldest: LedgerEntry | undefined, record: NamespaceRecord): number {
  if (oldest === undefined) return 0;
  const first = oldest.version === record.version ? oldest.firstRun : firstRunOfVersion(record);
  return record.highWaterMark - first + 1;
}

function lifeMsOf({ storeId }: NamespaceRecord, nowMs: number): number {
  return nowMs - (parseStoreId(storeId)?.initialisedAtMs ?? nowMs);
}

function rateOf(runs: number, windowMs: number, measuredMs: number, runsLeft: number, nowMs: number): UseRate {
  const exhaustedAtMs = runs === 0 ? Number.POSITIVE_INFINITY : nowMs + Math.floor((runsLeft / runs) * measuredMs);
  return {
    windowMs,
    runs,
    runsPerDay: (runs / measuredMs) * DAY_MS,
    exhaustedAtMs: exhaustedAtMs <= INSTANT_MAX_MS ? exhaustedAtMs : null,
  };
}
