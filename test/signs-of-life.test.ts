/** The one mechanism by which long runs show that they live. */
import { afterEach, expect, test, vi } from "vitest";
import { SignsOfLife } from "./signs-of-life.js";

const ERASED = "\u001b[2K";

afterEach(() => void vi.useRealTimers());

function signsFor(columns: number | undefined) {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  const said: string[] = [];
  const signs = new SignsOfLife({ write: (text) => said.push(text), columns, nowMs: () => performance.now() });
  return { signs, said };
}

test("where there is no terminal a plain line comes at once, and then every 15 seconds, while nobody calls", () => {
  const { signs, said } = signsFor(undefined);
  let count = 0;
  signs.show(() => `${count} rows`);
  count = 7;
  vi.advanceTimersByTime(14_999);
  expect(said).toEqual(["[0:00] 0 rows\n"]);
  vi.advanceTimersByTime(45_001);
  expect(said.slice(1)).toEqual(["[0:15] 7 rows\n", "[0:30] 7 rows\n", "[0:45] 7 rows\n", "[1:00] 7 rows\n"]);
  signs.end();
  vi.advanceTimersByTime(60_000);
  expect(said).toHaveLength(5);
});

test("a loop that lets no timer run is told of all the same, and not at each of its turns", () => {
  const said: string[] = [];
  let nowMs = 0;
  const signs = new SignsOfLife({ write: (text) => said.push(text), columns: undefined, nowMs: () => nowMs });
  for (; nowMs < 40_000; nowMs += 100) signs.show(`turn ${nowMs / 100}`);
  signs.end();
  expect(said).toEqual(["[0:00] turn 0\n", "[0:15] turn 150\n", "[0:30] turn 300\n"]);
});

test("the timer says nothing again that a caller was just told of", () => {
  const { signs, said } = signsFor(undefined);
  signs.show("one");
  vi.advanceTimersByTime(8_000);
  signs.show("two");
  vi.advanceTimersByTime(9_000);
  signs.show("three");
  vi.advanceTimersByTime(9_000);
  signs.end();
  expect(said).toEqual(["[0:00] one\n", "[0:15] two\n"]);
});

test("on a terminal one line is written over, never wider than it, and is gone before a table and at the end", () => {
  const { signs, said } = signsFor(40);
  signs.showTimed("loaded, with words that are too long for this", 600_000);
  vi.advanceTimersByTime(500);
  signs.wipe();
  signs.end();
  expect(said).toHaveLength(3);
  for (const text of said.slice(0, 2)) {
    expect(text.startsWith(`${ERASED}[0:00] loaded`)).toBe(true);
    expect(text.endsWith("\r")).toBe(true);
    expect(text).not.toContain("\n");
    expect(text.length).toBeLessThanOrEqual(ERASED.length + 39 + "\r".length);
  }
  // Once: where nothing stands any more, there may be a table by now.
  expect(said.slice(2)).toEqual([ERASED]);
});
