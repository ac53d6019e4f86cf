/**
 * How much of a version's run space is used, how fast it goes and when it ends: figures for operators, from the record and the newest
 * leases. Pure.
 */
import type { CapacityAnswer } from "@callnumber/protocol/operator";
import { holderUses } from "./capacity-holders.js";
import { type Look, lookSince, runCountOf } from "./capacity-look.js";
import { runSpaceOf } from "./run-space.js";
import { type RateWindow, ratesOf, runsFrom } from "./status.js";
import type { NamespaceRecord } from "./store.js";

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
