/**
 * How much of a version's run space is used, how fast it goes and when it ends: figures for operators, from the record and the newest
 * leases. Pure.
 */
import { RUN_MAX } from "@callnumber/protocol/codec";
import type { CapacityAnswer } from "@callnumber/protocol/operator";
import { INSTANT_MAX_MS, type UseRate } from "@callnumber/protocol/wire";
import { holderUses } from "../capacity-holders.js";
import { LOOK_LEASES_MAX, type Look, lookSince, runCountOf } from "../capacity-look.js";
import { runSpaceOf } from "../run-space.js";
import type { NamespaceRecord } from "../store.js";
import { parseStoreId } from "../store-id.js";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Over which the rate of use is measured. */
const RATE_WINDOWS_MS: readonly number[] = [HOUR_MS, DAY_MS, 7 * DAY_MS];

/** The figures without the alarms. */
export function capacityOf(record: NamespaceRecord, look: Look, nowMs: number): Omit<CapacityAnswer, "alarms"> {
  const { namespace, version, highWaterMark } = record;
  return {
    namespace,
    version,
    highWaterMark,
    ...runSpaceOf(record, nowMs),
    rates: ratesOf(record, look, nowMs),
    lookedAt: { leaseCount: look.leases.length, fromMs: look.leases.at(-1)?.leasedAtMs ?? null },
    holders: holderUses(look.leases, nowMs),
  };
}

/**
 * The runs leased over each window, and when the run space of the version ends at that rate. Skipped runs are no use: one recovery
 * would outweigh years of leases. A window is left out when the namespace is younger, where it would repeat a shorter one, or when
 * the look does not reach back to its beginning.
 */
function ratesOf(record: NamespaceRecord, look: Look, nowMs: number): readonly UseRate[] {
  const lifeMs = nowMs - (parseStoreId(record.storeId)?.initialisedAtMs ?? nowMs);
  const lookedMs = nowMs - look.completeFromMs;
  return RATE_WINDOWS_MS.filter((windowMs, index) => {
    if (index > 0) return windowMs <= Math.min(lifeMs, lookedMs);
    // So many leases within an hour are the rate that matters most.
    return windowMs <= lookedMs || look.leases.length >= LOOK_LEASES_MAX;
  }).map((windowMs) => {
    const runs = runCountOf(lookSince(look, nowMs - windowMs).leases);
    // Never over less than a minute: a first lease is no rate.
    const measuredMs = Math.max(Math.min(windowMs, lifeMs, lookedMs), MINUTE_MS);
    return rateOf(runs, windowMs, measuredMs, RUN_MAX - record.highWaterMark, nowMs);
  });
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
