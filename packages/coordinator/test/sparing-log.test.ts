/** A flood of refusals leaves a few lines and a sum. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { REFUSAL_LINES_PER_SECOND_MAX, SparingLog } from "../src/sparing-log.js";

let lines: { event: string; code?: string; refusalCount?: number }[];
let log: SparingLog;

beforeEach(() => {
  vi.useFakeTimers();
  lines = [];
  const write = (fields: object, event: string) => void lines.push({ event, ...fields });
  log = new SparingLog({ debug: write, info: write, warn: write, error: write });
});

afterEach(() => {
  vi.useRealTimers();
});

const linesOf = (event: string) => lines.filter((line) => line.event === event);

test("a flood of refusals has so many lines in a second, and one sum for each code", () => {
  for (let index = 0; index < 1_000; index++)
    log.info({ code: index % 2 === 0 ? "rate_limited" : "unauthorized" }, "refusal");
  vi.advanceTimersByTime(1_000);
  expect(linesOf("refusal")).toHaveLength(2 * REFUSAL_LINES_PER_SECOND_MAX);
  const summed = linesOf("refusals");
  expect(summed.map(({ code }) => code)).toEqual(["rate_limited", "unauthorized"]);
  expect(summed.reduce((sum, { refusalCount = 0 }) => sum + refusalCount, 0)).toBe(
    1_000 - 2 * REFUSAL_LINES_PER_SECOND_MAX,
  );
});

test("a few refusals have a line each, second after second, and no sum", () => {
  for (let second = 0; second < 5; second++) {
    for (let index = 0; index < 10; index++) log.debug({ code: "not_found" }, "refusal");
    vi.advanceTimersByTime(1_001);
  }
  expect(linesOf("refusal")).toHaveLength(50);
  expect(linesOf("refusals")).toEqual([]);
});

test("a flood of one code hides no other, whatever is written of it", () => {
  for (let index = 0; index < 1_000; index++) log.debug({ code: "not_found" }, "refusal");
  log.info({ code: "unauthorized" }, "refusal");
  expect(linesOf("refusal").at(-1)).toMatchObject({ code: "unauthorized" });
});

test("nothing else is left out, in a flood either", () => {
  for (let index = 0; index < 100; index++) log.info({ code: "rate_limited" }, "refusal");
  for (let index = 0; index < 100; index++) log.info({}, "lease");
  expect(linesOf("lease")).toHaveLength(100);
});

test("what is pending is written when it ends", () => {
  for (let index = 0; index < 30; index++) log.info({ code: "rate_limited" }, "refusal");
  log.close();
  expect(linesOf("refusals")).toMatchObject([{ refusalCount: 10 }]);
});
