/** A holder that starts repeatedly waits longer and longer, is never stopped permanently, and no other holder is affected. */
import type { Lease } from "@callnumber/protocol/api";
import { beforeEach, expect, test } from "vitest";
import { FREE_STARTS, FREE_WINDOW_MS, LOOP_OVER_MS, PAUSE_MAX_MS, RestartBrake } from "../src/limits/restart-brake.js";

const CRASHING = { name: "letters", host: "mail-1", pid: 1, labels: {} };
const NEIGHBOR = { ...CRASHING, name: "lists" };
const MINUTE_MS = 60_000;

let brake: RestartBrake;
let nowMs: number;
let run: number;

beforeEach(() => {
  brake = new RestartBrake({ isPausing: true });
  nowMs = 5_000_000;
  run = 0;
});

function untilNextMs(holder = CRASHING, namespace = "main"): number {
  return brake.untilStartMs(namespace, { holder, lastRun: null }, nowMs);
}

/** One start of a process, which gets its lease if it need not wait. Returns how long it would have to. */
function start(holder = CRASHING, lastRun: number | null = null): { waitMs: number; lease: Lease | undefined } {
  const waitMs = brake.untilStartMs("main", { holder, lastRun }, nowMs);
  if (waitMs > 0) return { waitMs, lease: undefined };
  run++;
  const granted = { namespace: "main", storeId: "a-store", version: 0, firstRun: run, runCount: 1, leasedAtMs: 0 };
  const lease = { ...granted, nonce: `nonce-${run}-abcdefghij`, proof: "r" };
  brake.begin("main", { holder, lastRun }, nowMs)(lease);
  return { waitMs, lease };
}

function startOften(count: number, holder = CRASHING): void {
  for (let index = 0; index < count; index++) expect(start(holder).waitMs).toBe(0);
}

/** A start that gets no lease. */
function fail(holder: typeof CRASHING): void {
  brake.begin("main", { holder, lastRun: null }, nowMs)(undefined);
}

function report(lease: Lease | undefined, lastSequence: number | null): void {
  brake.reported("main", { nonce: lease?.nonce ?? "", lastSequence }, nowMs);
}

/** Starts as soon as it may, with so long from one crash to the next try. Returns how many got a lease. */
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

test("a pool of importers on one host starts without a pause, and raises no alarm", () => {
  startOften(FREE_STARTS - 1);
  expect(brake.loops("main", nowMs)).toEqual([]);
});

test("a pool may start again once its processes work, as a report or a second run shows", () => {
  for (let count = 0; count < 10 * 40; count++) {
    const { waitMs, lease } = start();
    expect(waitMs).toBe(0);
    if (count % 2 === 0) report(lease, 16_383);
    else start(CRASHING, lease?.firstRun);
  }
  expect(brake.loops("main", nowMs)).toEqual([]);
});

test("a crash loop gets fewer and fewer leases, and never none", () => {
  const perTenMinutes = Array.from({ length: 30 }, () => crashFor(10 * MINUTE_MS, 500));
  expect(perTenMinutes[0]).toBeGreaterThan(FREE_STARTS);
  for (const [index, count] of perTenMinutes.entries()) {
    // What a long pause leaves over belongs to the ten minutes after it.
    if (index > 0) expect(count).toBeLessThanOrEqual((perTenMinutes[index - 1] as number) + 1);
  }
  expect(perTenMinutes.at(-1)).toBe((10 * MINUTE_MS) / PAUSE_MAX_MS);
});

test("a crash loop is not slowed down when it is slower than its free starts", () => {
  const everyMs = FREE_WINDOW_MS / FREE_STARTS + 1_000;
  expect(crashFor(6 * 60 * MINUTE_MS, everyMs)).toBe(Math.ceil((6 * 60 * MINUTE_MS) / everyMs));
  expect(brake.loops("main", nowMs)).toEqual([]);
});

test("a crash loop counts when every process has the same pid, as in a container", () => {
  startOften(FREE_STARTS);
  expect(untilNextMs()).toBeGreaterThan(0);
});

test("a crash loop counts when its processes report no number", () => {
  for (let index = 0; index < FREE_STARTS; index++) report(start().lease, null);
  expect(untilNextMs()).toBeGreaterThan(0);
});

test("a crash loop delays no process of the holder that has had a run, and no other holder", () => {
  crashFor(30 * MINUTE_MS, 100);
  start();
  expect(untilNextMs()).toBeGreaterThan(0);
  expect(start(CRASHING, 1).waitMs).toBe(0);
  startOften(FREE_STARTS, NEIGHBOR);
  expect(start({ ...CRASHING, host: "mail-2" }).waitMs).toBe(0);
  expect(untilNextMs(CRASHING, "other")).toBe(0);
});

test("a crash loop ends with the first process that works", () => {
  crashFor(60 * MINUTE_MS, 500);
  nowMs += untilNextMs();
  const { lease } = start();
  expect(untilNextMs()).toBeGreaterThan(MINUTE_MS);
  report(lease, 7);
  expect(untilNextMs()).toBe(0);
  expect(brake.loops("main", nowMs)).toEqual([]);
});

test("a crash loop ends with time", () => {
  crashFor(60 * MINUTE_MS, 500);
  nowMs += 3 * FREE_WINDOW_MS;
  startOften(FREE_STARTS);
});

test("a crash loop does not count while nothing is leased, as when the store is away", () => {
  startOften(1);
  for (let index = 0; index < 1_000; index++) fail(CRASHING);
  startOften(FREE_STARTS - 1);
  expect(brake.loops("main", nowMs)).toMatchObject([{ startCount: FREE_STARTS }]);
});

test("a crash loop counts after as many other holders as are kept", () => {
  for (let index = 0; index < 10_000; index++) fail({ ...CRASHING, name: `other-${index}` });
  startOften(FREE_STARTS);
  expect(untilNextMs()).toBeGreaterThan(0);
});

test("a request counts as a start as soon as it is admitted, also with others of the same moment", () => {
  let begun = 0;
  for (; untilNextMs() === 0; begun++) brake.begin("main", { holder: CRASHING, lastRun: null }, nowMs);
  expect(begun).toBe(FREE_STARTS);
});

test("a crash loop is not forgotten when a client invents a name for each start", () => {
  crashFor(30 * MINUTE_MS, 100);
  start();
  const untilMs = untilNextMs();
  expect(untilMs).toBeGreaterThan(0);
  for (let index = 0; index < 20_000; index++) start({ ...CRASHING, name: `invented-${index}` });
  expect(untilNextMs()).toBe(untilMs);
});

test("the alarm names holder, host, starts and pause, and ends when the holder requests no more", () => {
  crashFor(5 * MINUTE_MS, 100);
  const [loop, ...others] = brake.loops("main", nowMs);
  expect(others).toEqual([]);
  const holder = { name: "letters", host: "mail-1" };
  expect(loop).toMatchObject({ holder, startCount: run, pauseMs: expect.any(Number) });
  expect(brake.loops("other", nowMs)).toEqual([]);
  nowMs += LOOP_OVER_MS + (loop?.pauseMs ?? 0) + 1;
  expect(brake.loops("main", nowMs)).toEqual([]);
});

test("the alarm is raised also where no start has to wait", () => {
  brake = new RestartBrake({ isPausing: false });
  startOften(2 * FREE_STARTS);
  expect(brake.loops("main", nowMs)).toMatchObject([{ startCount: 2 * FREE_STARTS, pauseMs: 0 }]);
});
