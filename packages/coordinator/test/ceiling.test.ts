/** What the run ceiling means for the leases of a namespace, and how its last recovery is reported. */

import type { RecoveryReason } from "@callnumber/protocol/api";
import { RUN_MAX } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import { CoordinatorError } from "../src/errors.js";
import { BURST_RUNS, CeilingMonitor, ceilingAt, whenCeilingReaches } from "../src/guard/ceiling.js";
import { DEFAULT_BOUNDS } from "../src/guard/clocks.js";
import { RecoveryReport } from "../src/guard/guard-state.js";
import { parseStoreId, type StoreIdFields } from "../src/guard/store-id.js";
import type { Log } from "../src/log.js";
import { storeIdFrom } from "./commands-for-test.js";

const BEGIN_MS = 1_795_000_000_000;
const storeId = storeIdFrom(100, { initializedAtMs: BEGIN_MS, rate: 4 });
const id = parseStoreId(storeId) as StoreIdFields;

function watchAt(clock: { nowMs: number }): CeilingMonitor {
  return new CeilingMonitor({ namespace: "main", bounds: DEFAULT_BOUNDS, now: () => clock.nowMs });
}

const atLine = (retryAfterMs?: number) =>
  new CoordinatorError("run_ceiling_reached", "wait", retryAfterMs === undefined ? {} : { retryAfterMs });

test("the run ceiling begins a burst above the first run and rises by the rate, to the instant of each run", () => {
  expect(ceilingAt(id, 0, BEGIN_MS)).toBe(100 + BURST_RUNS);
  expect([249, 250, 1_000].map((ms) => ceilingAt(id, 0, BEGIN_MS + ms) - ceilingAt(id, 0, BEGIN_MS))).toEqual([
    0, 1, 4,
  ]);
  for (const run of [100 + BURST_RUNS, 70_000, RUN_MAX]) {
    const ms = whenCeilingReaches(id, 0, run);
    expect([ceilingAt(id, 0, ms), ceilingAt(id, 0, ms - 1)]).toEqual([run, run - 1]);
  }
});

test("the run ceiling of the next version begins where that of the one before ends, at run 1", () => {
  const endMs = whenCeilingReaches(id, 0, RUN_MAX);
  expect(ceilingAt(id, 1, endMs)).toBe(1 + BURST_RUNS);
  expect(whenCeilingReaches(id, 2, 1 + BURST_RUNS)).toBe(whenCeilingReaches(id, 1, RUN_MAX));
});

test("the watch shows the room up to the run ceiling and the wait for the next run, neither ever below 0", () => {
  const watch = watchAt({ nowMs: BEGIN_MS });
  const mark = (highWaterMark: number) => ({ storeId, version: 0, highWaterMark });
  expect(watch.headroomAbove(mark(99))).toBe(1 + BURST_RUNS);
  expect([99, 100 + BURST_RUNS, 103 + BURST_RUNS].map((run) => watch.waitMsAfter(mark(run)))).toEqual([0, 250, 1_000]);
  expect(watch.headroomAbove(mark(103 + BURST_RUNS))).toBe(0);
  const unknown = { ...mark(99), storeId: "none" };
  expect([watch.headroomAbove(unknown), watch.waitMsAfter(unknown)]).toEqual([0, 0]);
});

test("a mark farther above the run ceiling than clocks explain needs an operator", () => {
  const watch = watchAt({ nowMs: BEGIN_MS });
  const near = { storeId, version: 0, highWaterMark: 99 + BURST_RUNS + 44 };
  watch.assertNear(near);
  expect(() => watch.assertNear({ ...near, highWaterMark: near.highWaterMark + 1 })).toThrow(
    expect.objectContaining({ code: "manual_recovery_required" }),
  );
  expect(watch.noteRefusal(atLine(11_000))).toMatchObject({ code: "run_ceiling_reached" });
  expect(watch.noteRefusal(atLine(11_001))).toMatchObject({
    code: "manual_recovery_required",
    message: expect.stringContaining(`before ${new Date(BEGIN_MS + 11_001).toISOString()}`),
  });
});

test("a shortage lasts from its first rejection to its latest, and ends after a minute without one", () => {
  const clock = { nowMs: BEGIN_MS };
  const watch = watchAt(clock);
  expect(watch.shortageMs).toBe(0);
  for (const error of [
    new Error("other"),
    new CoordinatorError("store_recovering", "other", { reason: "heartbeat_expired" }),
    { code: "run_ceiling_reached" },
  ]) {
    expect(watch.noteRefusal(error)).toBe(error);
  }
  clock.nowMs += 1;
  const refusal = atLine();
  expect(watch.noteRefusal(refusal)).toBe(refusal);
  clock.nowMs += 60_000;
  expect(watch.shortageMs).toBe(0);
  watch.noteRefusal(atLine(250));
  expect(watch.shortageMs).toBe(60_000);
  clock.nowMs += 60_000;
  expect(watch.shortageMs).toBe(60_000);
  clock.nowMs += 1;
  expect(watch.shortageMs).toBe(0);
  watch.noteRefusal(atLine(250));
  clock.nowMs += 5;
  watch.noteRefusal(atLine(250));
  expect(watch.shortageMs).toBe(5);
});

describe("the report of a recovery", () => {
  const logged: object[] = [];
  const log = { warn: (fields: object) => void logged.push(fields) } as unknown as Log;
  const noted = (reason: RecoveryReason, { idleMs = 0, skipped = 5, known = undefined as string | undefined } = {}) => {
    const store = { epochCause: () => known };
    const options = { namespace: "main", log, now: () => 7, store, bounds: { gapMs: 300_000 } };
    const report = new RecoveryReport(options, watchAt({ nowMs: BEGIN_MS }), { changedAtMs: 3 });
    expect([report.changedAtMs, report.last]).toEqual([3, null]);
    const claimed = { nonce: "n", storeId, version: 0, epoch: "e", generation: 1, nodeCount: 1 };
    const before = { ...claimed, highWaterMark: 100 + BURST_RUNS, changedAtMs: BEGIN_MS };
    const confirmed = { ...before, highWaterMark: before.highWaterMark + skipped };
    report.note({ reason, idleSinceMs: BEGIN_MS - idleMs, claimed: before, confirmed });
    return report.last;
  };

  test.each([
    [90_000, "90 s"],
    [120_000, "2 min"],
    [2 * 3_600_000 - 1, "119 min"],
    [2 * 3_600_000, "2 h"],
    [2 * 86_400_000 - 1, "47 h"],
    [2 * 86_400_000, "2 days"],
  ])("the report of a recovery after %i ms of silence says %s", (idleMs, words) => {
    expect(noted("heartbeat_expired", { idleMs })).toEqual({
      atMs: 7,
      reason: "heartbeat_expired",
      skippedRunCount: 5,
      explanation: `Idle for ${words}: skipped 5 runs`,
    });
  });

  test("the report of a recovery names the cause and the runs, and when leasing continues", () => {
    expect(noted("rolled_back", { skipped: 1 })?.explanation).toBe(
      "The store lost runs that were leased: skipped 1 run",
    );
    expect(logged.at(-1)).toMatchObject({
      before: 100 + BURST_RUNS,
      mark: 101 + BURST_RUNS,
      explanation: "The store lost runs that were leased: skipped 1 run, leasing in 1 s",
    });
    expect(noted("epoch_changed", { known: "the machine was restarted" })?.explanation).toMatch(/^The machine was/);
    expect(noted("epoch_changed", { idleMs: 360_000 })?.explanation).toMatch(
      /^Idle for 6 min, and the store was restarted/,
    );
    expect(noted("claimed", { skipped: 65_536 })?.explanation).toMatch(
      /a coordinator that stopped: skipped 65,536 runs$/,
    );
  });
});
