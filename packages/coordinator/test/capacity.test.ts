/** Figures on use and waste, where each can be counted by hand; and that many askers cost one look. */
import { RUN_COUNT, RUN_MAX } from "@callnumber/protocol/codec";
import type { AlarmSeverity } from "@callnumber/protocol/operator";
import type { ErrorCode, LedgerEntry } from "@callnumber/protocol/wire";
import { describe, expect, test } from "vitest";
import { CoordinatorError } from "../src/errors.js";
import { ceilingAt, whenCeilingReaches } from "../src/guard/ceiling.js";
import { parseStoreId } from "../src/guard/store-id.js";
import type { Log } from "../src/log.js";
import { AlarmsWatch } from "../src/status/alarms.js";
import {
  capacityOf,
  holderUses,
  type LeaseWindow,
  LIVE_MS,
  WASTED_BELOW_NUMBERS,
  WINDOW_LEASES_MAX,
} from "../src/status/capacity.js";
import { CACHED_MS, CapacityReader } from "../src/status/capacity-reader.js";
import { runSpaceOf } from "../src/status/status.js";
import {
  DAY_MS,
  HOUR_MS,
  type LeaseWords,
  leaseOf,
  leasesInARow,
  ledgerOf,
  MINUTE_MS,
  markOf,
  NOW_MS,
  recordOf,
} from "./ledger-for-capacity.js";

const WEEK_MS = 7 * DAY_MS;
const AN_EXHAUSTED = { state: "exhausted", lastSequence: 16_383 } as const;

describe("the run space", () => {
  test("of a version is told from its first run on, with what is left and the end of its line", () => {
    const record = recordOf({ firstRun: 101, highWaterMark: 300, lifeMs: DAY_MS });
    const id = parseStoreId(record.storeId);
    if (id === undefined) throw new Error("no store id");
    expect(runSpaceOf(record, NOW_MS)).toEqual({
      runsUsed: 200,
      runsLeft: RUN_MAX - 300,
      usedShare: 200 / (RUN_MAX - 100),
      callNumbersLeft: (RUN_MAX - 300) * 16_384,
      headroomRuns: ceilingAt(id, 0, NOW_MS) - 300,
      ceilingRunsPerSecond: 2,
      ceilingEndsAtMs: whenCeilingReaches(id, 0, RUN_MAX),
    });
    expect(runSpaceOf({ ...record, version: 1, highWaterMark: 0 }, NOW_MS)).toMatchObject({
      runsUsed: 0,
      runsLeft: RUN_MAX,
    });
    expect(runSpaceOf({ ...record, version: 1, highWaterMark: RUN_MAX }, NOW_MS)).toMatchObject({
      usedShare: 1,
      runsLeft: 0,
    });
  });

  test("has no more room than runs", () => {
    expect(runSpaceOf(recordOf({ highWaterMark: RUN_MAX - 5, lifeMs: 20 * 365 * DAY_MS }), NOW_MS).headroomRuns).toBe(
      5,
    );
  });
});

describe("rates", () => {
  test("count leases, and no run that a jump passed over", async () => {
    const leases = leasesInARow([
      { agoMs: 6 * DAY_MS, runCount: 10 },
      { agoMs: 2 * HOUR_MS, runCount: 20 },
      { agoMs: MINUTE_MS, firstRun: 1_000_000, runCount: 30 },
    ]);
    const { rates } = await capacityFrom(leases);
    expect(rates.map(({ windowMs, runs }) => [windowMs, runs])).toEqual([
      [HOUR_MS, 30],
      [DAY_MS, 50],
      [WEEK_MS, 60],
    ]);
    const runsLeft = RUN_MAX - 1_000_029;
    expect(rates[0]?.exhaustedAtMs).toBe(NOW_MS + Math.floor((runsLeft / 30) * HOUR_MS));
  });

  test("leave out windows with more leases than a look takes, and measure the hour over those that it took", async () => {
    const [old, fresh] = [50, WINDOW_LEASES_MAX];
    const leases = leasesInARow([
      ...Array.from({ length: old }, (): LeaseWords => ({ agoMs: 2 * HOUR_MS })),
      ...Array.from({ length: fresh }, (): LeaseWords => ({ agoMs: MINUTE_MS })),
    ]);
    const { rates, lookedAt } = await capacityFrom(leases);
    expect(lookedAt).toEqual({ leaseCount: WINDOW_LEASES_MAX, fromMs: NOW_MS - MINUTE_MS });
    expect(rates).toMatchObject([{ windowMs: HOUR_MS, runs: fresh, runsPerDay: fresh * 1_440 }]);
  });

  test("leave out windows longer than the namespace's life, and measure the first over that life", () => {
    const leases = [leaseOf({ agoMs: MINUTE_MS, runCount: 12 })];
    const record = recordOf({ highWaterMark: 12, lifeMs: HOUR_MS / 2 });
    const { rates } = capacityOf(record, lookOf(leases), NOW_MS);
    expect(rates).toMatchObject([{ windowMs: HOUR_MS, runs: 12, runsPerDay: 576 }]);
  });

  test("forecast nothing when nothing was leased, no date beyond the calendar, and now at the end of the run space", () => {
    const ratesFor = (highWaterMark: number, leases: readonly LedgerEntry[]) =>
      capacityOf(recordOf({ highWaterMark }), lookOf(leases), NOW_MS).rates;
    const ends = (rates: ReturnType<typeof ratesFor>) => rates.map(({ exhaustedAtMs }) => exhaustedAtMs);
    expect(ends(ratesFor(0, []))).toEqual([null, null, null]);
    expect(ends(ratesFor(1, [leaseOf({ agoMs: 2 * DAY_MS })]))).toEqual([null, null, null]);
    expect(ends(ratesFor(RUN_MAX, [leaseOf({ firstRun: RUN_MAX })]))).toEqual([NOW_MS, NOW_MS, NOW_MS]);
  });

  function lookOf(leases: readonly LedgerEntry[]): LeaseWindow {
    return { leases, completeFromMs: NOW_MS - WEEK_MS };
  }

  async function capacityFrom(leases: ReturnType<typeof leasesInARow>) {
    const reader = readerOf(leases);
    return await reader.capacity("main");
  }
});

describe("a holder", () => {
  test("is one name, whatever its hosts and processes; who took most stands first", () => {
    const leases = leasesInARow([
      { holder: { name: "a", host: "z", pid: 1 }, agoMs: HOUR_MS },
      { holder: { name: "a", host: "y", pid: 1 }, runCount: 2, agoMs: LIVE_MS },
      { holder: { name: "b", pid: 1 }, runCount: 5, agoMs: LIVE_MS - 1 },
      { holder: { name: "b", pid: 2 }, runCount: 2, agoMs: LIVE_MS - 1 },
    ]);
    expect(holderUses(leases.toReversed(), NOW_MS)).toMatchObject([
      { name: "b", hosts: ["h"], processCount: 2, leaseCount: 2, runCount: 7, share: 0.7, isLive: true },
      { name: "a", hosts: ["y", "z"], processCount: 2, leaseCount: 2, runCount: 3, share: 0.3, isLive: false },
    ]);
  });

  test("is live while it reports", () => {
    const report = { progress: { reportedAtMs: NOW_MS - MINUTE_MS } };
    expect(holderUses([leaseOf({ agoMs: DAY_MS, ...report })], NOW_MS)).toMatchObject([{ isLive: true }]);
  });

  const lease = { firstRun: 11, runCount: 4, agoMs: HOUR_MS };
  test.each<[string, LeaseWords["progress"], object]>([
    ["nothing is known of it", null, { wastedRunCount: 0 }],
    ["it goes on in the third", { run: 13, lastSequence: 3 }, { wastedRunCount: 0 }],
    ["it was closed unused", { state: "closed" }, { wastedRunCount: 4 }],
    [
      "it was closed in the third, early",
      { run: 13, state: "closed", lastSequence: WASTED_BELOW_NUMBERS - 2 },
      { wastedRunCount: 2 },
    ],
    [
      "it was closed in the third, late",
      { run: 13, state: "closed", lastSequence: WASTED_BELOW_NUMBERS - 1 },
      { wastedRunCount: 1 },
    ],
    ["it used up the last", { run: 14, ...AN_EXHAUSTED }, { wastedRunCount: 0 }],
    ["it never left the coordinator", { state: "discarded" as "closed" }, { wastedRunCount: 0, discardedRunCount: 4 }],
  ])("wastes the runs of a lease that made fewer than 100 numbers: %s", (_, progress, expected) => {
    const [use] = holderUses([leaseOf({ ...lease, progress: progress ?? null })], NOW_MS);
    expect(use).toMatchObject({ discardedRunCount: 0, ...expected });
  });

  test("that ended and was started again wastes what it left, once it is silent for long enough", () => {
    const started = (agoMs: number) =>
      holderUses(
        leasesInARow([
          { agoMs: agoMs + MINUTE_MS, holder: { pid: 1 }, runCount: 3, progress: { run: 2 } },
          { agoMs, holder: { pid: 2 } },
        ]).toReversed(),
        NOW_MS,
      )[0]?.wastedRunCount;
    expect(started(LIVE_MS)).toBe(2);
    expect(started(LIVE_MS - MINUTE_MS - 1)).toBe(0);
  });
});

describe("asking", () => {
  test("many times at once costs one look, and a little later another one", async () => {
    const leases = leasesInARow(Array.from({ length: 250 }, () => ({ agoMs: MINUTE_MS })));
    const ledger = ledgerOf(leases);
    const clock = { nowMs: NOW_MS };
    const reader = readerOf(leases, { ledger, now: () => clock.nowMs });
    const answers = await Promise.all(Array.from({ length: 20 }, () => reader.capacity("main")));
    expect(new Set(answers).size).toBe(1);
    const looked = ledger.asked.count;
    clock.nowMs += CACHED_MS - 1;
    await reader.capacity("main");
    expect(ledger.asked.count).toBe(looked);
    clock.nowMs += 1;
    await reader.capacity("main");
    expect(ledger.asked.count).toBe(2 * looked);
  });

  test.each<[what: string, ask: (reader: CapacityReader) => Promise<unknown>]>([
    ["capacity", (reader) => reader.capacity("main")],
    ["history", (reader) => reader.history("main", 3_600_000)],
    ["alarms", (reader) => reader.alarms("main")],
  ])("for %s after the clock went back asks again, and keeps that as long as ever", async (_, ask) => {
    const leases = leasesInARow(Array.from({ length: 3 }, () => ({ agoMs: MINUTE_MS })));
    const clock = { nowMs: NOW_MS };
    const reader = readerOf(leases, { now: () => clock.nowMs });
    const first = await ask(reader);
    clock.nowMs -= 1;
    const second = await ask(reader);
    expect(second).not.toBe(first);
    expect(await ask(reader)).toBe(second);
    clock.nowMs += CACHED_MS - 1;
    expect(await ask(reader)).toBe(second);
    clock.nowMs -= 3_600_000;
    expect(await ask(reader)).not.toBe(second);
  });

  test("again after a failure asks again", async () => {
    let isAway = true;
    const record = recordOf({ highWaterMark: 0 });
    const reader = readerOf([], {
      read: async () => {
        if (isAway) throw new CoordinatorError("store_unavailable", "away");
        return { record, code: null, shortageMs: 0 };
      },
    });
    await expect(reader.capacity("main")).rejects.toMatchObject({ code: "store_unavailable" });
    isAway = false;
    expect(await reader.capacity("main")).toMatchObject({ runsUsed: 0, alarms: [] });
  });
});

describe("the watch", () => {
  test("tells the log when an alarm begins and when it has ended, once each", async () => {
    const told: [string, object][] = [];
    const note = (fields: object, event: string) => void told.push([event, fields]);
    const log: Log = { debug: () => {}, info: note, warn: note, error: note };
    const state = { share: 0, code: null as ErrorCode | null };
    const watch = new AlarmsWatch({
      log,
      namespaces: async () => ["main"],
      alarmsOf: async () => {
        if (state.code !== null) throw new CoordinatorError(state.code, "away");
        const reader = readerOf([], {
          read: async () => ({
            record: recordOf({ highWaterMark: Math.ceil(state.share * RUN_MAX) }),
            code: null,
            shortageMs: 0,
          }),
        });
        return await reader.alarms("main");
      },
    });
    const look = async (share: number, code: ErrorCode | null = null) => {
      Object.assign(state, { share, code });
      await Promise.all([watch.check(), watch.check()]);
      return told.splice(0).map(([event, fields]) => [event, (fields as { name: string }).name]);
    };
    expect(await look(0.4)).toEqual([]);
    expect(await look(0.5)).toEqual([["alarm", "runs_used_50"]]);
    expect(await look(0.81)).toEqual([["alarm", "runs_used_80"]]);
    expect(await look(0.82)).toEqual([]);
    // What can't be read is neither a beginning nor an end.
    expect(await look(0.82, "store_unavailable")).toEqual([]);
    expect(await look(0)).toEqual([
      ["alarm_cleared", "runs_used_80"],
      ["alarm_cleared", "runs_used_50"],
    ]);
    expect(await look(0.5)).toEqual([["alarm", "runs_used_50"]]);
  });

  test("tells an alarm again when it has another severity", async () => {
    const told: object[] = [];
    const silent = () => {};
    const log: Log = { debug: silent, error: silent, info: silent, warn: (fields) => void told.push(fields) };
    let severity: AlarmSeverity = "notice";
    const alarmsOf = async () => [{ name: "run_ceiling_ending", severity, explanation: "soon" }] as const;
    const watch = new AlarmsWatch({ log, namespaces: async () => ["main"], alarmsOf });
    for (const now of ["notice", "notice", "warning", "warning"] as const) {
      severity = now;
      await watch.check();
    }
    expect(told).toEqual([
      { namespace: "main", name: "run_ceiling_ending", severity: "notice", explanation: "soon" },
      { namespace: "main", name: "run_ceiling_ending", severity: "warning", explanation: "soon" },
    ]);
  });
});

function readerOf(
  leases: ReturnType<typeof leasesInARow>,
  own: Partial<ConstructorParameters<typeof CapacityReader>[0]> = {},
): CapacityReader {
  const silent = () => {};
  const record = recordOf({ highWaterMark: markOf(leases) % RUN_COUNT });
  return new CapacityReader({
    startLoops: () => [],
    ledger: ledgerOf(leases),
    log: { debug: silent, info: silent, warn: silent, error: silent },
    now: () => NOW_MS,
    namespaces: async () => ["main"],
    read: async () => ({ record, code: null, shortageMs: 0 }),
    ...own,
  });
}
