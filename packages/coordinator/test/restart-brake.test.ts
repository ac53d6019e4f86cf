/** Who starts again and again waits longer and longer, is never stopped for good, and nobody else feels it. */
import type { Lease } from "@callnumber/protocol/wire";
import { beforeEach, describe, expect, test } from "vitest";
import { FREE_STARTS, FREE_WINDOW_MS, LOOP_OVER_MS, PAUSE_MAX_MS, RestartBrake } from "../src/limits/restart-brake.js";

const CRASHING = { name: "letters", host: "mail-1", pid: 1, labels: {} };
const NEIGHBOR = { ...CRASHING, name: "lists" };
const MINUTE_MS = 60_000;

let starts: RestartBrake;
let nowMs: number;
let run: number;

beforeEach(() => {
  starts = new RestartBrake({ isPausing: true });
  nowMs = 5_000_000;
  run = 0;
});

function leaseFor(nonce: string): Lease {
  run++;
  const storeId = "a-store";
  return { namespace: "main", storeId, version: 0, firstRun: run, runCount: 1, leasedAtMs: 0, nonce, receipt: "r" };
}

/** One start of a process, which gets its lease if it need not wait. Answers how long it would have to. */
function start(holder = CRASHING, lastRun: number | null = null): { waitMs: number; lease: Lease | undefined } {
  const waitMs = starts.untilStartMs("main", { holder, lastRun }, nowMs);
  if (waitMs > 0) return { waitMs, lease: undefined };
  const lease = leaseFor(`nonce-${run}-abcdefghij`);
  starts.begin("main", { holder, lastRun }, nowMs)(lease);
  return { waitMs, lease };
}

/** Starts as soon as it may, with so long from one crash to the next try. Answers how many got a lease. */
function crashFor(durationMs: number, everyMs: number): number {
  const endMs = nowMs + durationMs;
  let count = 0;
  for (; nowMs < endMs; nowMs += everyMs) {
    const { waitMs } = start();
    if (waitMs === 0) count++;
    else nowMs += waitMs;
  }
  return count;
}

function untilNextMs(holder = CRASHING): number {
  return starts.untilStartMs("main", { holder, lastRun: null }, nowMs);
}

describe("a pool of importers on one host", () => {
  test("begins at once, and raises nothing", () => {
    for (let index = 0; index < FREE_STARTS - 1; index++) expect(start().waitMs).toBe(0);
    expect(starts.loops("main", nowMs)).toEqual([]);
  });

  test("may begin all over again after its processes have shown that they work, by a report or by a second run", () => {
    for (let round = 0; round < 10; round++) {
      for (let index = 0; index < 40; index++) {
        const { waitMs, lease } = start();
        expect(waitMs).toBe(0);
        if (lease === undefined) throw new Error("no lease");
        if (index % 2 === 0) starts.reported("main", { nonce: lease.nonce, lastSequence: 16_383 }, nowMs);
        else start(CRASHING, lease.firstRun);
      }
    }
    expect(starts.loops("main", nowMs)).toEqual([]);
  });
});

describe("a crash loop", () => {
  test("gets fewer and fewer leases, and never none", () => {
    const perTenMinutes = Array.from({ length: 30 }, () => crashFor(10 * MINUTE_MS, 500));
    expect(perTenMinutes[0]).toBeGreaterThan(FREE_STARTS);
    for (const [index, count] of perTenMinutes.entries()) {
      // What a long pause leaves over falls to the ten minutes after it.
      if (index > 0) expect(count).toBeLessThanOrEqual((perTenMinutes[index - 1] as number) + 1);
    }
    expect(perTenMinutes.at(-1)).toBe((10 * MINUTE_MS) / PAUSE_MAX_MS);
  });

  test("is no more slowed down than half an hour at a time has free starts for, when it is slow by itself", () => {
    const everyMs = FREE_WINDOW_MS / FREE_STARTS + 1_000;
    expect(crashFor(6 * 60 * MINUTE_MS, everyMs)).toBe(Math.ceil((6 * 60 * MINUTE_MS) / everyMs));
    expect(starts.loops("main", nowMs)).toEqual([]);
  });

  test("is counted also when every process has the same pid, as in a container", () => {
    for (let index = 0; index < FREE_STARTS; index++) start({ ...CRASHING, pid: 1 });
    expect(untilNextMs()).toBeGreaterThan(0);
  });

  test("is not counted down by reports of no number", () => {
    for (let index = 0; index < FREE_STARTS; index++) {
      const { lease } = start();
      starts.reported("main", { nonce: lease?.nonce ?? "", lastSequence: null }, nowMs);
    }
    expect(untilNextMs()).toBeGreaterThan(0);
  });

  test("hinders no process of the holder that has had a run, and no other holder", () => {
    crashFor(30 * MINUTE_MS, 100);
    start();
    expect(untilNextMs()).toBeGreaterThan(0);
    expect(start(CRASHING, 1).waitMs).toBe(0);
    for (let index = 0; index < FREE_STARTS; index++) expect(start(NEIGHBOR).waitMs).toBe(0);
    expect(start({ ...CRASHING, host: "mail-2" }).waitMs).toBe(0);
    expect(starts.untilStartMs("other", { holder: CRASHING, lastRun: null }, nowMs)).toBe(0);
  });

  test("is forgiven with the first process that works, and with time", () => {
    crashFor(60 * MINUTE_MS, 500);
    nowMs += untilNextMs();
    const { lease } = start();
    expect(untilNextMs()).toBeGreaterThan(MINUTE_MS);
    starts.reported("main", { nonce: lease?.nonce ?? "", lastSequence: 7 }, nowMs);
    expect(untilNextMs()).toBe(0);
    expect(starts.loops("main", nowMs)).toEqual([]);

    crashFor(60 * MINUTE_MS, 500);
    nowMs += 3 * FREE_WINDOW_MS;
    for (let index = 0; index < FREE_STARTS; index++) expect(start().waitMs).toBe(0);
  });

  test("is not counted while nothing is leased: a store that is away makes no crash loop", () => {
    for (let index = 0; index < 1_000; index++)
      starts.begin("main", { holder: CRASHING, lastRun: null }, nowMs)(undefined);
    expect(untilNextMs()).toBe(0);
  });

  test("can't be hidden in requests of one moment: each counts as soon as it is let through", () => {
    let begun = 0;
    for (; starts.untilStartMs("main", { holder: CRASHING, lastRun: null }, nowMs) === 0; begun++) {
      starts.begin("main", { holder: CRASHING, lastRun: null }, nowMs);
    }
    expect(begun).toBe(FREE_STARTS);
  });
});

describe("the alarm", () => {
  test("names holder, host, starts and pause, and ends when the holder asks no more", () => {
    crashFor(5 * MINUTE_MS, 100);
    const [loop, ...others] = starts.loops("main", nowMs);
    expect(others).toEqual([]);
    expect(loop).toMatchObject({ holder: { name: "letters", host: "mail-1" }, pauseMs: expect.any(Number) });
    expect(loop?.startCount).toBe(run);
    expect(starts.loops("other", nowMs)).toEqual([]);
    nowMs += LOOP_OVER_MS + (loop?.pauseMs ?? 0) + 1;
    expect(starts.loops("main", nowMs)).toEqual([]);
  });

  test("is raised also where nobody is made to wait", () => {
    starts = new RestartBrake({ isPausing: false });
    for (let index = 0; index < 2 * FREE_STARTS; index++) expect(start().waitMs).toBe(0);
    expect(starts.loops("main", nowMs)).toMatchObject([{ startCount: 2 * FREE_STARTS, pauseMs: 0 }]);
  });
});

test("somebody who invents a name for each start pushes out no crash loop", () => {
  crashFor(30 * MINUTE_MS, 100);
  start();
  const untilMs = untilNextMs();
  expect(untilMs).toBeGreaterThan(0);
  for (let index = 0; index < 20_000; index++) start({ ...CRASHING, name: `invented-${index}` });
  expect(untilNextMs()).toBe(untilMs);
});
