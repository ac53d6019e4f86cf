/** Runs over time: in which step each lease counts, and what is computed for leases that are too old to be read. */

import { HISTORY_STEP_COUNT, HISTORY_WINDOWS_MS } from "@callnumber/protocol/api";
import { RUN_MAX } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { WINDOW_LEASES_MAX } from "../src/status/capacity.js";
import { historyOf } from "../src/status/capacity-reader.js";
import { HOUR_MS, leaseOf, leasesInARow, ledgerOf, MINUTE_MS, NOW_MS, repeated } from "./ledger-for-capacity.js";

/** NOW_MS is the beginning of a minute: the current step has just begun. */
const history = (leases: ReturnType<typeof leasesInARow>, windowMs: number = HOUR_MS, nowMs = NOW_MS) =>
  historyOf(ledgerOf(leases), "main", windowMs, nowMs);

test("each lease counts in the step of its instant, and the last step is the current one", async () => {
  const leases = leasesInARow([
    { agoMs: 60 * MINUTE_MS, runCount: 1000 },
    { agoMs: 59 * MINUTE_MS, runCount: 1 },
    { agoMs: 2 * MINUTE_MS, runCount: 2 },
    { agoMs: 1 * MINUTE_MS + 1, runCount: 3 },
    { agoMs: 1 * MINUTE_MS, runCount: 4 },
    { agoMs: 0, runCount: 5 },
  ]);
  const { fromMs, stepMs, runs } = await history(leases);
  expect({ fromMs, stepMs }).toEqual({ fromMs: NOW_MS - 59 * MINUTE_MS, stepMs: MINUTE_MS });
  expect(runs).toHaveLength(HISTORY_STEP_COUNT);
  expect([runs[0], runs[57], runs[58], runs[59]]).toEqual([1, 5, 4, 5]);
  expect(runs.reduce((sum, count) => sum + count, 0)).toBe(15);
});

test.each([...HISTORY_WINDOWS_MS])(
  "steps of a window of %d ms stay where they are while time goes on",
  async (windowMs) => {
    const stepMs = windowMs / HISTORY_STEP_COUNT;
    const [one, later] = [await history([], windowMs, NOW_MS + 1), await history([], windowMs, NOW_MS + stepMs / 2)];
    expect(one.fromMs % stepMs).toBe(0);
    expect(later.fromMs - one.fromMs === 0 || later.fromMs - one.fromMs === stepMs).toBe(true);
  },
);

test("a skipped run is no lease", async () => {
  const leases = leasesInARow([{ agoMs: MINUTE_MS }, { agoMs: MINUTE_MS, firstRun: 1_000_000 }, { agoMs: 0 }]);
  expect((await history(leases)).runs.slice(-2)).toEqual([2, 1]);
});

test("steps before the leases that are read are computed from the high-water mark", async () => {
  const leases = leasesInARow([
    ...repeated(30, { agoMs: 40 * MINUTE_MS, runCount: 2 }),
    ...repeated(20, { agoMs: 20 * MINUTE_MS, runCount: 3 }),
    ...repeated(WINDOW_LEASES_MAX - 10, { agoMs: MINUTE_MS }),
  ]);
  const { runs } = await history(leases);
  expect([runs[19], runs[39], runs[58]]).toEqual([60, 60, WINDOW_LEASES_MAX - 10]);
  expect(runs.reduce((sum, count) => sum + count, 0)).toBe(120 + WINDOW_LEASES_MAX - 10);
});

test("runs that an advance of the version gave up were never leased", async () => {
  const leases = [
    leaseOf({ agoMs: 40 * MINUTE_MS, firstRun: 500, runCount: 10 }),
    leaseOf({ agoMs: 40 * MINUTE_MS, firstRun: 510, runCount: 10 }),
    leaseOf({ agoMs: 20 * MINUTE_MS, version: 1, firstRun: 1, runCount: 3 }),
    ...leasesInARow(
      Array.from({ length: WINDOW_LEASES_MAX }, (_, index) => ({ agoMs: MINUTE_MS, version: 1, firstRun: 4 + index })),
    ),
  ];
  const { runs } = await history(leases);
  expect(runs.reduce((sum, count) => sum + count, 0)).toBe(20 + 3 + WINDOW_LEASES_MAX);
  expect(Math.max(...runs)).toBeLessThan(RUN_MAX - 1000);
});
