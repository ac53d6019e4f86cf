/** Figures on use, where each can be counted in the test; that many requests cost one read; and when alarms are logged. */
import { RUN_COUNT, RUN_MAX } from "@callnumber/protocol/codec";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { describe, expect, test } from "vitest";
import { CoordinatorError } from "../src/errors.js";
import { ceilingAt, whenCeilingReaches } from "../src/guard/ceiling.js";
import { storeIdFields } from "../src/guard/store-id.js";
import { SILENT_LOG } from "../src/log.js";
import { capacityOf, holderUses, LIVE_MS, WINDOW_LEASES_MAX } from "../src/status/capacity.js";
import { CACHED_MS, CapacityReader, type CapacityReaderOptions } from "../src/status/capacity-reader.js";
import { runSpaceOf, statusOf } from "../src/status/status.js";
import {
  DAY_MS,
  HOUR_MS,
  leaseOf,
  leasesInARow,
  ledgerOf,
  MINUTE_MS,
  NOW_MS,
  recordOf,
  repeated,
} from "./ledger-for-capacity.js";

const WEEK_MS = 7 * DAY_MS;

describe("the run space", () => {
  const record = recordOf({ firstRun: 101, highWaterMark: 300, lifeMs: DAY_MS });

  test("the run space of a version counts from its first run on, up to the end of its run ceiling", () => {
    const id = storeIdFields(record.storeId);
    expect(runSpaceOf(record, NOW_MS)).toEqual({
      runsUsed: 200,
      runsLeft: RUN_MAX - 300,
      usedShare: 200 / (RUN_MAX - 100),
      callNumbersLeft: (RUN_MAX - 300) * 16_384,
      headroomRuns: ceilingAt(id, 0, NOW_MS) - 300,
      ceilingRunsPerSecond: 2,
      ceilingEndsAtMs: whenCeilingReaches(id, 0, RUN_MAX),
    });
  });

  test.each([
    ["of a later version counts from run 1 on", 1, 0, { runsUsed: 0, runsLeft: RUN_MAX }],
    ["of a used-up version has no runs left", 1, RUN_MAX, { usedShare: 1, runsLeft: 0 }],
  ])("the run space %s", (_, version, highWaterMark, expected) => {
    expect(runSpaceOf({ ...record, version, highWaterMark }, NOW_MS)).toMatchObject(expected);
  });

  test("the run space has no more headroom than runs", () => {
    const old = recordOf({ highWaterMark: RUN_MAX - 5, lifeMs: 20 * 365 * DAY_MS });
    expect(runSpaceOf(old, NOW_MS).headroomRuns).toBe(5);
  });
});

test("the status counts skipped runs as used, and has the time of the newest lease, not of the last heartbeat", () => {
  const record = { ...recordOf({ firstRun: 5, highWaterMark: 1_000 }), changedAtMs: NOW_MS };
  const expected = { lastLeaseAtMs: NOW_MS - 10, runsUsed: 996, runsLeft: RUN_MAX - 1_000 };
  expect(statusOf(record, leaseOf({ firstRun: 7, agoMs: 10 }), NOW_MS)).toMatchObject(expected);
});

test("the status has no time of a lease while nothing was leased", () => {
  const expected = { lastLeaseAtMs: null, runsUsed: 0, runsLeft: RUN_MAX - 4 };
  expect(statusOf(recordOf({ firstRun: 5, highWaterMark: 4 }), undefined, NOW_MS)).toMatchObject(expected);
});

describe("rates", () => {
  const ratesOf = (highWaterMark: number, leases: readonly LedgerEntry[], lifeMs = 30 * DAY_MS) =>
    capacityOf(recordOf({ highWaterMark, lifeMs }), { leases, completeFromMs: NOW_MS - WEEK_MS }, NOW_MS).rates;

  test("rates count leases, and no skipped run", async () => {
    const leases = leasesInARow([
      { agoMs: 6 * DAY_MS, runCount: 10 },
      { agoMs: 2 * HOUR_MS, runCount: 20 },
      { agoMs: MINUTE_MS, firstRun: 1_000_000, runCount: 30 },
    ]);
    const { rates } = await readerOf(leases).capacity("main");
    expect(rates.map(({ windowMs, runs }) => [windowMs, runs])).toEqual([
      [HOUR_MS, 30],
      [DAY_MS, 50],
      [WEEK_MS, 60],
    ]);
    const runsLeft = RUN_MAX - 1_000_029;
    expect(rates[0]?.exhaustedAtMs).toBe(NOW_MS + Math.floor((runsLeft / 30) * HOUR_MS));
  });

  test("rates leave out windows with more leases than are read, and measure the time of those that are", async () => {
    const old = repeated(50, { agoMs: 2 * HOUR_MS });
    const leases = leasesInARow([...old, ...repeated(WINDOW_LEASES_MAX, { agoMs: MINUTE_MS })]);
    const { rates, lookedAt } = await readerOf(leases).capacity("main");
    expect(lookedAt).toEqual({ leaseCount: WINDOW_LEASES_MAX, fromMs: NOW_MS - MINUTE_MS });
    const runsPerDay = WINDOW_LEASES_MAX * 1_440;
    // So many leases are enough for a forecast, however short it took.
    const exhaustedAtMs = expect.any(Number);
    expect(rates).toEqual([{ windowMs: MINUTE_MS, runs: WINDOW_LEASES_MAX, runsPerDay, exhaustedAtMs }]);
  });

  test.each([
    ["half an hour", HOUR_MS / 2, { windowMs: HOUR_MS / 2, runs: 12, runsPerDay: 576 }],
    ["a second, as of a minute", 1_000, { windowMs: MINUTE_MS, runs: 12, runsPerDay: 17_280 }],
  ])(
    "the rate of a namespace's first hour is measured over its life of %s, and forecasts nothing",
    (_, lifeMs, rate) => {
      const leases = [leaseOf({ agoMs: lifeMs, runCount: 12 })];
      expect(ratesOf(12, leases, lifeMs)).toEqual([{ ...rate, exhaustedAtMs: null }]);
    },
  );

  test("rates forecast once an hour is measured", () => {
    const leases = [leaseOf({ agoMs: MINUTE_MS, runCount: 12 })];
    const forecast = (lifeMs: number) => ratesOf(12, leases, lifeMs).map(({ exhaustedAtMs }) => exhaustedAtMs);
    expect(forecast(HOUR_MS - 1)).toEqual([null]);
    expect(forecast(HOUR_MS)).toEqual([NOW_MS + Math.floor(((RUN_MAX - 12) / 12) * HOUR_MS)]);
  });

  test.each([
    ["nothing while nothing was leased", 0, [], null],
    ["no date beyond the calendar", 1, [leaseOf({ agoMs: 2 * DAY_MS })], null],
    ["now at the end of the run space", RUN_MAX, [leaseOf({ firstRun: RUN_MAX })], NOW_MS],
  ])("rates forecast %s", (_, highWaterMark, leases, expected) => {
    expect(ratesOf(highWaterMark, leases).map(({ exhaustedAtMs }) => exhaustedAtMs)).toEqual(repeated(3, expected));
  });
});

test("a holder is one name, whatever its hosts and processes, and the one with most runs comes first", () => {
  const leases = leasesInARow([
    { holder: { name: "a", host: "z", pid: 1 }, agoMs: HOUR_MS },
    { holder: { name: "a", host: "y", pid: 1 }, runCount: 2, agoMs: LIVE_MS },
    { holder: { name: "b", pid: 1 }, runCount: 5, agoMs: HOUR_MS },
    { holder: { name: "b", pid: 2 }, agoMs: LIVE_MS - 1 },
    { holder: { name: "b", pid: 2 }, agoMs: LIVE_MS },
  ]);
  const [a, b] = [NOW_MS - LIVE_MS, NOW_MS - LIVE_MS + 1];
  expect(holderUses(leases.toReversed(), NOW_MS)).toEqual([
    { name: "b", leaseCount: 3, runCount: 7, share: 0.7, lastLeaseAtMs: b, isLive: true },
    { name: "a", leaseCount: 2, runCount: 3, share: 0.3, lastLeaseAtMs: a, isLive: false },
  ]);
});

test("a holder is live while it reports", () => {
  const progress = { reportedAtMs: NOW_MS - MINUTE_MS };
  expect(holderUses([leaseOf({ agoMs: DAY_MS, progress })], NOW_MS)).toMatchObject([{ isLive: true }]);
});

test.each([
  ["that closed its lease is not live", [{ state: "closed" }], false],
  ["that used up its runs and closed its spare one is not live", [{ state: "exhausted" }, { state: "closed" }], false],
  ["between two leases is live", [{ state: "exhausted" }], true],
  ["that closed one client of two is live", [{ state: "open" }, { state: "closed" }], true],
  ["that leased and did not report yet is live", [null, { state: "closed" }], true],
] as const)("a holder %s", (_, progresses, isLive) => {
  const leases = leasesInARow(progresses.map((progress) => ({ agoMs: MINUTE_MS, progress })));
  expect(holderUses(leases.toReversed(), NOW_MS)).toMatchObject([{ isLive }]);
});

test("a holder is live while one of its processes has closed nothing", () => {
  const closed = { progress: { state: "closed" }, agoMs: MINUTE_MS } as const;
  const one = { ...closed, holder: { pid: 1 } };
  const leases = leasesInARow([one, { holder: { pid: 2 }, progress: { state: "exhausted" }, agoMs: MINUTE_MS }]);
  expect(holderUses(leases, NOW_MS)).toMatchObject([{ isLive: true }]);
});

test("a holder whose lease of several runs is used up to its first run is live", () => {
  const [lease] = leasesInARow([{ runCount: 2, progress: { run: 1, state: "exhausted" } }]) as [LedgerEntry];
  const closed = leaseOf({ firstRun: 3, progress: { state: "closed" } });
  expect(holderUses([closed, lease], NOW_MS)).toMatchObject([{ isLive: true }]);
});

describe("a reader", () => {
  test("a reader reads once for many requests of the same moment, and again a little later", async () => {
    const ledger = ledgerOf(leasesInARow(repeated(250, { agoMs: MINUTE_MS })));
    const clock = { nowMs: NOW_MS };
    const reader = readerOf([], { ledger, now: () => clock.nowMs });
    const responses = await Promise.all(Array.from({ length: 20 }, () => reader.capacity("main")));
    expect(new Set(responses).size).toBe(1);
    const { readCount } = ledger;
    clock.nowMs += CACHED_MS - 1;
    await reader.capacity("main");
    expect(ledger.readCount).toBe(readCount);
    clock.nowMs += 1;
    await reader.capacity("main");
    expect(ledger.readCount).toBe(2 * readCount);
  });

  test("a reader shows at once what a recovery or an advance of the version changed", async () => {
    const state = { record: recordOf({ highWaterMark: 5 }), code: null, shortageMs: 0 };
    const reader = readerOf([], { read: async () => state });
    for (const changed of [{}, { generation: 1, highWaterMark: 70 }, { version: 1, highWaterMark: 0 }]) {
      state.record = { ...state.record, ...changed };
      const { version, highWaterMark } = state.record;
      expect(await reader.capacity("main")).toMatchObject({ version, highWaterMark });
    }
  });

  const READS: readonly (readonly [what: string, read: (reader: CapacityReader) => Promise<unknown>])[] = [
    ["capacity", (reader) => reader.capacity("main")],
    ["history", (reader) => reader.history("main", HOUR_MS)],
  ];

  test.each(READS)(
    "a reader reads %s again after the clock moved backward, and caches that as long as ever",
    async (_, read) => {
      const clock = { nowMs: NOW_MS };
      const reader = readerOf(leasesInARow(repeated(3, { agoMs: MINUTE_MS })), { now: () => clock.nowMs });
      const first = await read(reader);
      clock.nowMs -= 1;
      const second = await read(reader);
      expect(second).not.toBe(first);
      clock.nowMs += CACHED_MS - 1;
      expect(await read(reader)).toBe(second);
      clock.nowMs -= HOUR_MS;
      expect(await read(reader)).not.toBe(second);
    },
  );

  test.each(READS)("a reader reads %s again after a failure", async (_, read) => {
    let isAway = true;
    const leases = async () => {
      if (isAway) throw new CoordinatorError("store_unavailable", "away");
      return [];
    };
    const reader = readerOf([], { ledger: { leases } });
    await expect(read(reader)).rejects.toMatchObject({ code: "store_unavailable" });
    isAway = false;
    expect(await read(reader)).toMatchObject({ namespace: "main" });
  });
});

describe("an alarm", () => {
  /** Resolves to what a check logs, for a used share of the run space or another record; `away`: the store is. */
  function watched() {
    const logged: (readonly [event: string, name: string, severity: string])[] = [];
    const note = (fields: object, event: string) => {
      const { name, severity } = fields as { name: string; severity: string };
      logged.push([event, name, severity]);
    };
    const state = { record: recordOf({ highWaterMark: 0 }), isAway: false };
    const reader = readerOf([], {
      log: { ...SILENT_LOG, info: note, warn: note },
      read: async () => {
        if (state.isAway) throw new CoordinatorError("store_unavailable", "away");
        return { record: state.record, code: null, shortageMs: 0 };
      },
    });
    return async (now: Partial<typeof state>) => {
      Object.assign(state, now);
      const [check, shared] = [reader.checkAlarms(), reader.checkAlarms()];
      expect(shared).toBe(check);
      await check;
      return logged.splice(0);
    };
  }

  test("an alarm is logged once when it begins and when it is cleared", async () => {
    const check = watched();
    const used = (share: number) => ({
      isAway: false,
      record: recordOf({ highWaterMark: Math.ceil(share * RUN_MAX) }),
    });
    const raised = (name: string, severity: string) => [["alarm", name, severity]];
    const cleared = (name: string) => ["alarm_cleared", name, undefined];
    expect(await check(used(0.7))).toEqual([]);
    expect(await check(used(0.81))).toEqual(raised("runs_used_80", "warning"));
    expect(await check(used(0.96))).toEqual(raised("runs_used_95", "critical"));
    expect(await check(used(0.97))).toEqual([]);
    // What can't be read neither raises nor clears an alarm.
    expect(await check({ isAway: true })).toEqual([]);
    expect(await check(used(0))).toEqual([cleared("runs_used_95"), cleared("runs_used_80")]);
    expect(await check(used(0.81))).toEqual(raised("runs_used_80", "warning"));
  });

  test("an alarm is logged again when it has another severity", async () => {
    const check = watched();
    const ceilingEndsIn = (leftMs: number) => {
      const record = recordOf({ highWaterMark: 1_000, rate: 16 });
      const lifeMs = whenCeilingReaches(storeIdFields(record.storeId), 0, RUN_MAX) - NOW_MS + 30 * DAY_MS - leftMs;
      return { record: recordOf({ highWaterMark: 1_000, rate: 16, lifeMs }) };
    };
    const [soon, ended] = [ceilingEndsIn(HOUR_MS), ceilingEndsIn(-HOUR_MS)];
    expect(await check(soon)).toEqual([["alarm", "run_ceiling_ending", "notice"]]);
    expect(await check(soon)).toEqual([]);
    expect(await check(ended)).toEqual([["alarm", "run_ceiling_ending", "warning"]]);
    expect(await check(ended)).toEqual([]);
  });
});

function readerOf(leases: readonly LedgerEntry[], own: Partial<CapacityReaderOptions> = {}): CapacityReader {
  const { firstRun, runCount } = leases.at(-1) ?? { firstRun: 1, runCount: 0 };
  const record = recordOf({ highWaterMark: (firstRun + runCount - 1) % RUN_COUNT });
  return new CapacityReader({
    startLoops: () => [],
    processAlarms: () => [],
    ledger: ledgerOf(leases),
    log: SILENT_LOG,
    now: () => NOW_MS,
    namespaces: async () => ["main"],
    read: async () => ({ record, code: null, shortageMs: 0 }),
    ...own,
  });
}
