/** When an operator is told, and when not. */
import { RUN_MAX } from "@callnumber/protocol/codec";
import type { AlarmName } from "@callnumber/protocol/operator";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { describe, expect, test } from "vitest";
import { BURST_RUNS } from "../src/guard/bounds.js";
import {
  ALARM_WINDOW_MS,
  type AlarmSubject,
  alarmsOf,
  CEILING_ENDING_MS,
  HEADROOM_LASTS_MIN_MS,
  SHORTAGE_MIN_MS,
  UNUSED_RUNS_FACTOR,
  UNUSED_RUNS_MIN,
  USED_SHARES,
} from "../src/status/alarms.js";
import { DAY_MS, HOUR_MS, type LeaseWords, leasesInARow, MINUTE_MS, NOW_MS, recordOf } from "./ledger-for-capacity.js";

const YEAR_MS = 365 * DAY_MS;

function subjectOf(own: Partial<AlarmSubject> & { readonly leases?: readonly LedgerEntry[] } = {}): AlarmSubject {
  const { leases = [], ...rest } = own;
  return {
    record: recordOf({ highWaterMark: 1000 }),
    guardCode: null,
    shortageMs: 0,
    hour: { leases: leases.toReversed(), completeFromMs: NOW_MS - ALARM_WINDOW_MS },
    startLoops: [],
    nowMs: NOW_MS,
    ...rest,
  };
}

function namesOf(own: Parameters<typeof subjectOf>[0]): AlarmName[] {
  return alarmsOf(subjectOf(own)).map(({ name }) => name);
}

/** Leases of one run each, by processes that end at once. */
function crashing(name: string, count: number): LeaseWords[] {
  return Array.from({ length: count }, (_, index) => ({ agoMs: (count - index) * 1000, holder: { name, pid: index } }));
}

/** Leases of runs that were used to the end, but for the last. */
function working(name: string, count: number): LeaseWords[] {
  return Array.from({ length: count }, (_, index) => ({
    agoMs: (count - index) * 1000,
    holder: { name },
    ...(index === count - 1 ? {} : { progress: { state: "exhausted" as const, lastSequence: 16_383 } }),
  }));
}

describe("a namespace in which all is well", () => {
  test("raises nothing, whether or not anybody leases", () => {
    expect(namesOf({})).toEqual([]);
    expect(namesOf({ leases: leasesInARow(working("importer", 5)) })).toEqual([]);
  });
});

describe("the run space", () => {
  test.each([
    [0.499_999, []],
    [USED_SHARES.runs_used_50, ["runs_used_50"]],
    [0.799_999, ["runs_used_50"]],
    [USED_SHARES.runs_used_80, ["runs_used_80", "runs_used_50"]],
    [USED_SHARES.runs_used_95, ["runs_used_95", "runs_used_80", "runs_used_50"]],
  ])("that is used to %d raises %j, the gravest first", (share, expected) => {
    // So old that room is no matter, and its line far from its end.
    const record = recordOf({ highWaterMark: Math.ceil(share * RUN_MAX), lifeMs: 16.7 * YEAR_MS });
    expect(namesOf({ record })).toEqual(expected);
  });

  test("counts from the first run of the version", () => {
    const firstRun = RUN_MAX - 999;
    expect(namesOf({ record: recordOf({ firstRun, highWaterMark: RUN_MAX - 501, lifeMs: 1 }) })).not.toContain(
      "runs_used_50",
    );
    expect(namesOf({ record: recordOf({ firstRun, highWaterMark: RUN_MAX - 500, lifeMs: 1 }) })).toContain(
      "runs_used_50",
    );
  });

  test("that has ended is said first, also when only a doubt has ended it, with the way on", () => {
    const record = recordOf({ highWaterMark: RUN_MAX, lifeMs: 18 * YEAR_MS });
    const [first] = alarmsOf(subjectOf({ record }));
    expect(first).toMatchObject({ name: "run_space_exhausted", severity: "critical" });
    expect(first?.explanation).toContain("callnumber advance-version");
    expect(namesOf({ guardCode: "run_space_exhausted" })).toEqual(["run_space_exhausted"]);
    const [last] = alarmsOf(subjectOf({ record: { ...record, version: 7 } }));
    expect(last?.explanation).toContain("the last version");
  });

  test("whose clock line is about to end is said before the first doubt ends it", () => {
    // At 16 runs a second.
    const lineMs = ((RUN_MAX - 1 - BURST_RUNS) / 16) * 1000;
    const at = (leftMs: number) => recordOf({ highWaterMark: 1000, rate: 16, lifeMs: Math.ceil(lineMs - leftMs) });
    expect(namesOf({ record: at(CEILING_ENDING_MS + MINUTE_MS) })).toEqual([]);
    expect(alarmsOf(subjectOf({ record: at(CEILING_ENDING_MS - MINUTE_MS) }))).toMatchObject([
      { name: "run_ceiling_ending", severity: "notice" },
    ]);
    expect(alarmsOf(subjectOf({ record: at(-MINUTE_MS) }))).toMatchObject([
      { name: "run_ceiling_ending", severity: "warning" },
    ]);
  });
});

describe("the room under the clock line", () => {
  const LIFE_MS = 100_000_000;
  const line = 1 + (LIFE_MS / 1000) * 2 + BURST_RUNS;
  const withRoom = (headroomRuns: number) => recordOf({ highWaterMark: line - headroomRuns, lifeMs: LIFE_MS });
  const taken = (runs: number) =>
    leasesInARow([{ runCount: runs, agoMs: MINUTE_MS, progress: { run: runs, state: "open" } }]);

  test("raises an alarm only when it has limited leasing for more than a minute, as no recovery does", () => {
    for (const shortageMs of [0, SHORTAGE_MIN_MS]) {
      expect(namesOf({ record: withRoom(0), shortageMs })).toEqual([]);
      expect(namesOf({ record: withRoom(4), leases: taken(100), shortageMs })).toEqual([]);
    }
    const [alarm, ...more] = alarmsOf(
      subjectOf({ record: withRoom(0), leases: taken(100), shortageMs: SHORTAGE_MIN_MS + 1 }),
    );
    expect(more).toEqual([]);
    expect(alarm).toMatchObject({ name: "headroom_low", severity: "warning" });
    expect(alarm?.explanation).toMatch(/^Importers have waited for runs for 2 minutes: /);
  });

  test("that ends within hours at the rate of the last hour is warned of", () => {
    // 7,200 runs an hour is what the line gives.
    const lasting = (ms: number) => ({
      record: withRoom(10_000),
      leases: taken(7200 + Math.ceil((10_000 * HOUR_MS) / ms)),
    });
    expect(alarmsOf(subjectOf(lasting(HEADROOM_LASTS_MIN_MS - MINUTE_MS)))).toMatchObject([
      { name: "headroom_low", severity: "warning" },
    ]);
    expect(namesOf(lasting(HEADROOM_LASTS_MIN_MS + 10 * MINUTE_MS))).toEqual([]);
    expect(namesOf({ record: withRoom(10_000), leases: taken(7200) })).toEqual([]);
  });
});

describe("a holder's share", () => {
  const raised = (words: readonly LeaseWords[]) => namesOf({ leases: leasesInARow(words) }).includes("holder_share");

  test("is nobody's concern while one holder is alone, whatever it takes", () => {
    expect(raised(crashing("a", 1000))).toBe(false);
  });

  test("is too much for an importer that ends and starts again and again beside others, and it is named", () => {
    const leases = leasesInARow([...working("b", 500), ...working("c", 3), ...crashing("a", UNUSED_RUNS_MIN)]);
    const [alarm] = alarmsOf(subjectOf({ leases }));
    expect(alarm).toMatchObject({ name: "holder_share", severity: "warning" });
    expect(alarm?.explanation).toContain(`"a" took ${UNUSED_RUNS_MIN} runs by ${UNUSED_RUNS_MIN} processes`);
  });

  test("is none for who uses up what it takes, and takes most", () => {
    expect(raised([...crashing("b", 3), ...working("a", 1000)])).toBe(false);
  });

  test("is none below a least amount, nor beside others that do the same", () => {
    expect(raised([...working("b", 3), ...crashing("a", UNUSED_RUNS_MIN - 1)])).toBe(false);
    expect(raised([...crashing("b", 25), ...crashing("a", UNUSED_RUNS_FACTOR * 25)])).toBe(false);
    expect(raised([...crashing("b", 25), ...crashing("a", UNUSED_RUNS_FACTOR * 25 + 1)])).toBe(true);
  });
});

describe("a holder that starts again and again", () => {
  const loop = { holder: { name: "letters", host: "mail-1" }, startCount: 96, forMs: 5 * MINUTE_MS, pauseMs: 16_000 };

  test("is named, with its host, its starts and its pause", () => {
    const [alarm] = alarmsOf(subjectOf({ startLoops: [loop] }));
    expect(alarm).toMatchObject({ name: "holder_restarts", severity: "warning" });
    expect(alarm?.explanation).toMatch(/"letters" on mail-1 was started 96 times within 5 minutes.*waits 16 s/);
  });

  test("is named by a command that can be copied into a shell, whatever the importer calls itself", () => {
    const commandFor = (name: string) => {
      const [alarm] = alarmsOf(subjectOf({ startLoops: [{ ...loop, holder: { name, host: "mail-1" } }] }));
      return /callnumber runs .*(?=`)/.exec(alarm?.explanation ?? "")?.[0];
    };
    expect(commandFor("letters")).toBe("callnumber runs --namespace main --holder letters");
    expect(commandFor("$(reboot)")).toBe("callnumber runs --namespace main --holder '$(reboot)'");
    expect(commandFor("it's")).toBe("callnumber runs --namespace main --holder 'it'\\''s'");
  });
});
