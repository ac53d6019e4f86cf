/** A flood of strangers does not fill the log: so many lines a second, the rest in a sum, and none is lost to those who count. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CALLER_EVENTS } from "../src/caller-events.js";
import { EventHub } from "../src/events.js";
import { LINES_PER_SECOND_MAX, RefusalLines } from "../src/refusal-lines.js";
import { CALLERS_KEPT_MAX, CALLERS_TOLD_MAX } from "../src/refusal-sum.js";

let lines: [level: string, event: string, fields: object][];
let bounded: RefusalLines;

beforeEach(() => {
  vi.useFakeTimers();
  lines = [];
  const level = (name: string) => (fields: object, event: string) => void lines.push([name, event, fields]);
  bounded = new RefusalLines({
    debug: level("debug"),
    info: level("info"),
    warn: level("warn"),
    error: level("error"),
  });
});

afterEach(() => {
  bounded.close();
  vi.useRealTimers();
});

const refuse = (count: number, code: string) => {
  for (let index = 0; index < count; index++) bounded.info({ code, index, remoteAddress: "10.0.0.1" }, "refusal");
};
/** All of one caller. */
const sumOf = (code: string, refusalCount: number) => {
  const caller = { tokenId: undefined, remoteAddress: "10.0.0.1", refusalCount };
  return { code, refusalCount, callers: [caller] };
};
const sumsIn = () => lines.filter(([, event]) => event === "refusals").map(([, , fields]) => fields);

test("a second has so many lines of a code, and one with the sum of the others", () => {
  refuse(1_000, "unauthorized");
  refuse(LINES_PER_SECOND_MAX + 1, "forbidden");
  expect(lines).toHaveLength(2 * LINES_PER_SECOND_MAX);
  vi.advanceTimersByTime(1_000);
  expect(sumsIn()).toEqual([sumOf("unauthorized", 1_000 - LINES_PER_SECOND_MAX), sumOf("forbidden", 1)]);
});

test("the next second has lines again, and no sum where there is nothing to sum up", () => {
  refuse(LINES_PER_SECOND_MAX, "unauthorized");
  vi.advanceTimersByTime(1_000);
  refuse(LINES_PER_SECOND_MAX, "unauthorized");
  expect(lines).toHaveLength(2 * LINES_PER_SECOND_MAX);
  vi.advanceTimersByTime(10_000);
  expect(sumsIn()).toEqual([]);
});

test("what no caller causes at will has all its lines, and so have leases", () => {
  for (let index = 0; index < 100; index++) bounded.info({ code: "unauthorized" }, "lease");
  for (let index = 0; index < 100; index++) bounded.warn({ namespace: "main" }, "jump");
  for (let index = 0; index < 100; index++) bounded.error({ reason: "full" }, "seal_failed");
  expect(lines).toHaveLength(300);
});

test.each([...CALLER_EVENTS].filter((event) => event !== "refusal"))(
  "of %s, which one caller can cause, the first lines are written at once, the others in a sum at their level",
  (event) => {
    for (let index = 0; index < 100; index++) bounded.warn({ namespace: "main", index }, event);
    refuse(1, "unauthorized");
    const told = lines.filter(([, name]) => name === event).map(([, , fields]) => (fields as { index: number }).index);
    expect(told).toEqual(Array.from({ length: LINES_PER_SECOND_MAX }, (_, index) => index));
    expect(lines).toHaveLength(LINES_PER_SECOND_MAX + 1);
    vi.advanceTimersByTime(1_000);
    expect(lines.slice(LINES_PER_SECOND_MAX + 1)).toEqual([
      ["warn", "repeated", { of: event, eventCount: 100 - LINES_PER_SECOND_MAX }],
    ]);
  },
);

test("a flood of a fault takes no line from a refusal of the same code, nor one event from another", () => {
  for (let index = 0; index < 100; index++) bounded.warn({}, "clocks_disagree");
  refuse(LINES_PER_SECOND_MAX, "clocks_disagree");
  bounded.warn({}, "run_beyond_mark");
  expect(lines).toHaveLength(2 * LINES_PER_SECOND_MAX + 1);
});

test("those of the level of debugging are bounded, too", () => {
  for (let index = 0; index < 100; index++) bounded.debug({ code: "not_found" }, "refusal");
  expect(lines).toHaveLength(LINES_PER_SECOND_MAX);
});

test("a flood of those that only debuggers read takes no line from the others, and has its sum where it stands itself", () => {
  for (let index = 0; index < 100; index++) bounded.debug({ code: "forbidden" }, "refusal");
  refuse(LINES_PER_SECOND_MAX, "forbidden");
  expect(lines.filter(([level]) => level === "info")).toHaveLength(LINES_PER_SECOND_MAX);
  vi.advanceTimersByTime(1_000);
  expect(lines.filter(([, event]) => event === "refusals")).toEqual([
    ["debug", "refusals", { ...sumOf("forbidden", 100 - LINES_PER_SECOND_MAX), callers: expect.anything() }],
  ]);
});

test("a sum names those who caused most of it, and keeps no more of others than it may", () => {
  refuse(LINES_PER_SECOND_MAX, "forbidden");
  const many = (count: number, caller: object) => {
    for (let index = 0; index < count; index++) bounded.info({ code: "forbidden", ...caller }, "refusal");
  };
  for (let index = 0; index < 2 * CALLERS_KEPT_MAX; index++) many(1, { remoteAddress: `10.1.0.${index}` });
  // Too late to be told apart, and still counted.
  many(7, { tokenId: "late0000", remoteAddress: "10.9.0.1" });
  many(3, { remoteAddress: "10.1.0.4" });
  vi.advanceTimersByTime(1_000);
  many(LINES_PER_SECOND_MAX, {});
  many(4, { tokenId: "aaaaaaaa", remoteAddress: "10.0.0.1" });
  many(9, { tokenId: "bbbbbbbb", remoteAddress: "10.0.0.1" });
  vi.advanceTimersByTime(1_000);
  const [first, second] = sumsIn() as { refusalCount: number; callers: object[] }[];
  expect(first?.refusalCount).toBe(2 * CALLERS_KEPT_MAX + 7 + 3);
  expect(first?.callers).toHaveLength(CALLERS_TOLD_MAX);
  expect(first?.callers[0]).toEqual({ tokenId: undefined, remoteAddress: "10.1.0.4", refusalCount: 4 });
  expect(second).toEqual({
    code: "forbidden",
    refusalCount: 13,
    callers: [
      { tokenId: "bbbbbbbb", remoteAddress: "10.0.0.1", refusalCount: 9 },
      { tokenId: "aaaaaaaa", remoteAddress: "10.0.0.1", refusalCount: 4 },
    ],
  });
});

test("a sum that is pending is told at the end", () => {
  refuse(LINES_PER_SECOND_MAX + 5, "unauthorized");
  bounded.close();
  expect(sumsIn()).toEqual([sumOf("unauthorized", 5)]);
  expect(vi.getTimerCount()).toBe(0);
});

test("those who count before it hear of each one", () => {
  const hub = new EventHub(bounded);
  let count = 0;
  hub.subscribe(() => void count++);
  for (let index = 0; index < 500; index++) hub.info({ code: "unauthorized" }, "refusal");
  expect(count).toBe(500);
  expect(lines).toHaveLength(LINES_PER_SECOND_MAX);
});
