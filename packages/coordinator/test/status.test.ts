/** Forecasts, where the arithmetic can be checked by hand. */
import { RUN_MAX } from "@callnumber/protocol/codec";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { describe, expect, test } from "vitest";
import { rateWindowsMsOf, statusOf } from "../src/status.js";
import { newStoreId } from "../src/store-id.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOW_MS = 1_800_000_000_000;

function recordOf(lifeMs: number, firstRun: number, highWaterMark: number) {
  const storeId = newStoreId({ firstRun, initialisedAtMs: NOW_MS - lifeMs, rate: 2 });
  return {
    namespace: "main",
    storeId,
    version: 0,
    firstVersion: 0,
    firstRun,
    highWaterMark,
    changedAtMs: NOW_MS - 5,
    generation: 0,
    phase: 0,
    seal: "-",
    nodeCount: 1,
    receiptKey: "",
  };
}

const leaseOf = (firstRun: number): LedgerEntry => ({
  version: 0,
  firstRun,
  runCount: 1,
  leasedAtMs: NOW_MS - 10,
  holder: { name: "x", host: "h", pid: 1, labels: {} },
  coordinator: "c",
  nonce: "nonce-0123456789",
  progress: null,
});

/** `oldest` holds, for each window that applies, the oldest lease within it. */
function statusWith(
  record: ReturnType<typeof recordOf>,
  oldest: readonly (LedgerEntry | undefined)[],
  newest?: LedgerEntry,
) {
  const windows = rateWindowsMsOf(record, NOW_MS).map((windowMs, index) => ({ windowMs, oldest: oldest[index] }));
  return statusOf(record, newest, windows, NOW_MS);
}

describe("the forecast", () => {
  test("measures each window that the namespace has lived through", () => {
    // 1,000 runs: 10 in the last hour, 100 in the last day, all of them in the last week.
    const { rates } = statusWith(recordOf(30 * DAY_MS, 1, 1000), [leaseOf(991), leaseOf(901), leaseOf(1)]);
    expect(rates.map(({ windowMs, runs }) => [windowMs, runs])).toEqual([
      [HOUR_MS, 10],
      [DAY_MS, 100],
      [7 * DAY_MS, 1000],
    ]);
    expect(rates.map(({ runsPerDay }) => Math.round(runsPerDay))).toEqual([240, 100, 143]);
    expect(rates[1]?.exhaustedAtMs).toBe(NOW_MS + ((RUN_MAX - 1000) / 100) * DAY_MS);
  });

  test("leaves out windows longer than the namespace's life, and measures the first over that life", () => {
    const { rates, runsLeft } = statusWith(recordOf(HOUR_MS / 2, 1, 12), [leaseOf(1), leaseOf(1), leaseOf(1)]);
    expect(rates.map(({ windowMs, runs, runsPerDay }) => [windowMs, runs, runsPerDay])).toEqual([[HOUR_MS, 12, 576]]);
    expect(runsLeft).toBe(RUN_MAX - 12);
  });

  test("foretells nothing when nothing was leased, and no date beyond the calendar", () => {
    const idle = statusWith(recordOf(30 * DAY_MS, 5, 4), [undefined, undefined, undefined]);
    expect(idle).toMatchObject({ runsUsed: 0, lastLeaseAtMs: null, runsLeft: RUN_MAX - 4 });
    expect(idle.rates.every(({ runs, exhaustedAtMs }) => runs === 0 && exhaustedAtMs === null)).toBe(true);
    const slow = statusWith(recordOf(30 * DAY_MS, 1, 1), [undefined, undefined, leaseOf(1)]);
    expect(slow.rates[2]?.exhaustedAtMs).toBeNull();
  });

  test("at the end of the run space says now", () => {
    const { rates, runsLeft } = statusWith(recordOf(DAY_MS, 1, RUN_MAX), [leaseOf(RUN_MAX), leaseOf(1)]);
    expect(runsLeft).toBe(0);
    expect(rates[0]?.exhaustedAtMs).toBe(NOW_MS);
  });

  test("tells the time of the newest lease, not of the last touch, and counts what was passed over as used", () => {
    const record = { ...recordOf(DAY_MS, 5, 1_000), changedAtMs: NOW_MS };
    const { lastLeaseAtMs, runsUsed } = statusWith(record, [], leaseOf(7));
    expect({ lastLeaseAtMs, runsUsed }).toEqual({ lastLeaseAtMs: NOW_MS - 10, runsUsed: 996 });
  });
});
