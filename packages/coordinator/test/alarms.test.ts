/** When each alarm is raised, and when not. */

import type { AlarmName } from "@callnumber/protocol/api";
import { RUN_MAX } from "@callnumber/protocol/codec";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { describe, expect, test } from "vitest";
import { BURST_RUNS } from "../src/guard/ceiling.js";
import {
  ALARM_WINDOW_MS,
  type AlarmSubject,
  alarmsOf,
  CEILING_ENDING_MS,
  HEADROOM_LASTS_MIN_MS,
  SHORTAGE_MIN_MS,
  USED_SHARES,
} from "../src/status/alarms.js";
import { DAY_MS, HOUR_MS, leasesInARow, MINUTE_MS, NOW_MS, recordOf, repeated } from "./ledger-for-capacity.js";

const YEAR_MS = 365 * DAY_MS;

type Own = Partial<AlarmSubject> & { readonly leases?: readonly LedgerEntry[] };

function raisedBy({ leases = [], ...own }: Own) {
  return alarmsOf({
    record: recordOf({ highWaterMark: 1000 }),
    code: null,
    shortageMs: 0,
    hour: { leases: leases.toReversed(), completeFromMs: NOW_MS - ALARM_WINDOW_MS },
    startLoops: [],
    processAlarms: [],
    nowMs: NOW_MS,
    ...own,
  });
}

const namesOf = (own: Own): AlarmName[] => raisedBy(own).map(({ name }) => name);

test.each([
  ["without leases", {}],
  ["with an importer that works", { leases: leasesInARow(repeated(5, { agoMs: MINUTE_MS })) }],
])("the namespace %s raises no alarm", (_, own) => {
  expect(namesOf(own)).toEqual([]);
});

test.each([
  [0.799_999, []],
  [USED_SHARES.runs_used_80, ["runs_used_80"]],
  [USED_SHARES.runs_used_95, ["runs_used_95", "runs_used_80"]],
])("a run space that is used to %d raises %j, the most severe first", (share, expected) => {
  // So old that its headroom does not matter, and its run ceiling far from the end.
  const record = recordOf({ highWaterMark: Math.ceil(share * RUN_MAX), lifeMs: 16.7 * YEAR_MS });
  expect(namesOf({ record })).toEqual(expected);
});

test.each([
  [201, false],
  [200, true],
])("a run space of 1,000 runs of which %i are left raises runs_used_80: %s", (left, isRaised) => {
  const record = recordOf({ firstRun: RUN_MAX - 999, highWaterMark: RUN_MAX - left, lifeMs: 1 });
  expect(namesOf({ record }).includes("runs_used_80")).toBe(isRaised);
});

test("a run space that is used up is named first, with the command for the next version", () => {
  const record = recordOf({ highWaterMark: RUN_MAX, lifeMs: 18 * YEAR_MS });
  const explanation = expect.stringContaining("callnumber advance-version");
  expect(raisedBy({ record })[0]).toMatchObject({ name: "run_space_exhausted", severity: "critical", explanation });
  const [last] = raisedBy({ record: { ...record, version: 7 } });
  expect(last?.explanation).toContain("the last version");
});

test("a run space is used up where no recovery can end in the version", () => {
  expect(namesOf({ code: "run_space_exhausted" })).toEqual(["run_space_exhausted"]);
});

test.each([
  [CEILING_ENDING_MS + MINUTE_MS, []],
  [CEILING_ENDING_MS - MINUTE_MS, [{ name: "run_ceiling_ending", severity: "notice" }]],
  [-MINUTE_MS, [{ name: "run_ceiling_ending", severity: "warning" }]],
])("a run space whose run ceiling ends in %i ms raises %j", (leftMs, expected) => {
  const ceilingMs = ((RUN_MAX - 1 - BURST_RUNS) / 16) * 1000;
  const record = recordOf({ highWaterMark: 1000, rate: 16, lifeMs: Math.ceil(ceilingMs - leftMs) });
  const raised = raisedBy({ record });
  expect(raised).toHaveLength(expected.length);
  expect(raised).toMatchObject(expected);
});

describe("the headroom below the run ceiling", () => {
  const LIFE_MS = 100_000_000;
  const ceiling = 1 + (LIFE_MS / 1000) * 2 + BURST_RUNS;
  const withHeadroom = (headroomRuns: number) => recordOf({ highWaterMark: ceiling - headroomRuns, lifeMs: LIFE_MS });
  const taken = (runCount: number) => leasesInARow([{ runCount, agoMs: MINUTE_MS }]);

  test.each([
    [0, 0, []],
    [0, SHORTAGE_MIN_MS, []],
    [4, 0, taken(100)],
    [4, SHORTAGE_MIN_MS, taken(100)],
  ])("a headroom of %i runs raises nothing when it has limited leasing for %i ms", (headroom, shortageMs, leases) => {
    expect(namesOf({ record: withHeadroom(headroom), leases, shortageMs })).toEqual([]);
  });

  test("a headroom raises an alarm when it has limited leasing for more than a minute", () => {
    const raised = raisedBy({ record: withHeadroom(0), leases: taken(100), shortageMs: SHORTAGE_MIN_MS + 1 });
    const explanation = expect.stringMatching(/^Importers have waited for runs for 2 minutes: /);
    expect(raised).toEqual([{ name: "headroom_low", severity: "warning", explanation }]);
  });

  test("the headroom alarm names the holder that leased most runs of the hour, and no holder without leases", () => {
    const leases = leasesInARow([
      { holder: { name: "a" }, runCount: 2, agoMs: MINUTE_MS },
      { holder: { name: "b" }, runCount: 3, agoMs: MINUTE_MS },
      { holder: { name: "a" }, runCount: 2, agoMs: MINUTE_MS },
    ]);
    const own = { record: withHeadroom(0), shortageMs: SHORTAGE_MIN_MS + 1 };
    const hint =
      /\. Start fewer importers at once\. The leases of the greatest holder: `callnumber runs .*--holder a`$/;
    expect(raisedBy({ ...own, leases })[0]?.explanation).toMatch(hint);
    expect(raisedBy(own)[0]?.explanation).toMatch(/\. Start fewer importers at once$/);
  });

  test.each([
    [HEADROOM_LASTS_MIN_MS - MINUTE_MS, ["headroom_low"]],
    [HEADROOM_LASTS_MIN_MS + 10 * MINUTE_MS, []],
    [Number.POSITIVE_INFINITY, []],
  ])("a headroom that lasts %d ms at the rate of the last hour raises %j", (lastsMs, expected) => {
    // The ceiling rises by 7,200 runs an hour.
    const leases = taken(7200 + Math.ceil((10_000 * HOUR_MS) / lastsMs));
    const raised = raisedBy({ record: withHeadroom(10_000), leases });
    expect(raised.map(({ name }) => name)).toEqual(expected);
    for (const { severity } of raised) expect(severity).toBe("warning");
  });
});

test.each([
  [HOUR_MS, "at the rate of the last hour (60000 runs)"],
  [10 * MINUTE_MS, "at the rate of the last 10 minutes (60000 runs)"],
  [1_000, "at the rate of the last minute (60000 runs)"],
])("a low headroom is forecast from the last %i ms that were read, and says so", (readMs, rate) => {
  const hour = { leases: leasesInARow([{ runCount: 60_000 }]), completeFromMs: NOW_MS - readMs };
  const record = recordOf({ highWaterMark: 120_000 + BURST_RUNS - 10_000, lifeMs: 60_000 * 1_000 });
  expect(raisedBy({ record, hour })[0]?.explanation).toContain(rate);
});

describe("a holder that starts repeatedly", () => {
  const loopOf = (name: string) => {
    return { holder: { name, host: "mail-1" }, startCount: 96, forMs: 5 * MINUTE_MS, pauseMs: 16_000 };
  };

  test("the alarm for repeated starts names the holder, its host, its starts and its pause", () => {
    const explanation = expect.stringMatching(
      /"letters" on mail-1 was started 96 times within 5 minutes.*waits 16 s\. Find/,
    );
    const raised = raisedBy({ startLoops: [loopOf("letters")] });
    expect(raised).toEqual([{ name: "holder_restarts", severity: "warning", explanation }]);
  });

  test("the alarm for repeated starts counts the other holders, and shows where limits are off", () => {
    const [alarm] = raisedBy({ startLoops: [{ ...loopOf("letters"), pauseMs: 0 }, loopOf("lists")] });
    expect(alarm?.explanation).toContain("limits are off. 1 other does the same. Find");
  });

  test.each([
    ["letters", "letters"],
    ["$(reboot)", "'$(reboot)'"],
    ["it's", "'it'\\''s'"],
  ])("the alarm for a holder named %j has a command that can be copied into a shell", (name, quoted) => {
    const [alarm] = raisedBy({ startLoops: [loopOf(name)] });
    expect(alarm?.explanation).toContain(`\`callnumber runs --namespace main --holder ${quoted}\``);
  });
});
