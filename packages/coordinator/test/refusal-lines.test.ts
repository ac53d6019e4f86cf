/** A flood of strangers does not fill the log: so many lines a second, the rest in a sum, and none is lost to those who count. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { EventHub } from "../src/events.js";
import { LINES_PER_SECOND_MAX, RefusalLines } from "../src/refusal-lines.js";

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
  for (let index = 0; index < count; index++) bounded.info({ code, index }, "refusal");
};
const sumsIn = () => lines.filter(([, event]) => event === "refusals_unlogged").map(([, , fields]) => fields);

test("a second has so many lines of a code, and one with the sum of the others", () => {
  refuse(1_000, "unauthorized");
  refuse(LINES_PER_SECOND_MAX + 1, "forbidden");
  expect(lines).toHaveLength(2 * LINES_PER_SECOND_MAX);
  vi.advanceTimersByTime(1_000);
  expect(sumsIn()).toEqual([
    { code: "unauthorized", refusalCount: 1_000 - LINES_PER_SECOND_MAX },
    { code: "forbidden", refusalCount: 1 },
  ]);
});

test("the next second has lines again, and no sum where there is nothing to sum up", () => {
  refuse(LINES_PER_SECOND_MAX, "unauthorized");
  vi.advanceTimersByTime(1_000);
  refuse(LINES_PER_SECOND_MAX, "unauthorized");
  expect(lines).toHaveLength(2 * LINES_PER_SECOND_MAX);
  vi.advanceTimersByTime(10_000);
  expect(sumsIn()).toEqual([]);
});

test("what is no refusal has all its lines, and so has what is told as a warning or an error", () => {
  for (let index = 0; index < 100; index++) bounded.info({ code: "unauthorized" }, "lease");
  for (let index = 0; index < 100; index++) bounded.warn({ code: "unauthorized" }, "refusal");
  for (let index = 0; index < 100; index++) bounded.error({ code: "unauthorized" }, "refusal");
  expect(lines).toHaveLength(300);
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
  expect(lines.filter(([, event]) => event === "refusals_unlogged")).toEqual([
    ["debug", "refusals_unlogged", { code: "forbidden", refusalCount: 100 - LINES_PER_SECOND_MAX }],
  ]);
});

test("a sum that is pending is told at the end", () => {
  refuse(LINES_PER_SECOND_MAX + 5, "unauthorized");
  bounded.close();
  expect(sumsIn()).toEqual([{ code: "unauthorized", refusalCount: 5 }]);
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
