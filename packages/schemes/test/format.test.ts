/** Figures of any size are readable and never round to certainty or to nothing; what people type is parsed as they mean it, or rejected. */
import { InvalidArgumentError } from "commander";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatChance, formatCount, formatRate, formatSpan, YEAR_S } from "../src/commands/format.js";
import type { SchemesIo } from "../src/commands/io.js";
import { parseCount, parseRate, parseSpan } from "../src/commands/options.js";
import { outcomeAsJson, scenarioTable } from "../src/commands/simulate.js";
import { type Outcome, SCENARIOS, type Scenario } from "../src/simulation/simulate.js";
import { schemeNamed } from "./helpers.js";

test.each([
  [0, "0"],
  [0.491, "0.491"],
  [23, "23"],
  [38.25, "38.3"],
  [4_096, "4,096"],
  [999_999, "999,999"],
  [999_999.6, "1 million"],
  [4_194_304, "4.19 million"],
  [999_999_999, "1e9"],
  [2 ** 122, "5.32e36"],
  [Number.POSITIVE_INFINITY, "no bound"],
])("formatCount(%d) is %j", (value, text) => {
  expect(formatCount(value)).toBe(text);
});

test.each([
  [0, "none"],
  [9.4e-20, "1 in 1.06e19"],
  [1e-6, "1 in a million"],
  [0.00099, "1 in 1,010"],
  [0.38809860827, "38.8 %"],
  [0.99949, "99.9 %"],
  [0.9999, "nearly certain"],
  [1, "certain"],
])("formatChance(%d) is %j", (chance, text) => {
  expect(formatChance(chance)).toBe(text);
});

test.each([
  [0.0005, "0.5 ms"],
  [90, "90 s"],
  [3_600, "60 minutes"],
  [30_600, "8.5 hours"],
  [10 * 86_400, "10 days"],
  [17.2e6 * YEAR_S, "17.2 million years"],
])("formatSpan(%d) is %j", (seconds, text) => {
  expect(formatSpan(seconds)).toBe(text);
});

test("formatted figures are short, and only 0 is none and only 1 certain", () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (chance) => {
      const text = formatChance(chance);
      expect(text.length).toBeLessThan(18);
      expect(text === "none").toBe(chance === 0);
      expect(text === "certain").toBe(chance === 1);
      expect(text).not.toContain("100 %");
    }),
  );
  fc.assert(
    fc.property(fc.double({ min: 0, noNaN: true }), (value) => {
      expect(formatCount(value)).toMatch(/^([\d,.]+(e-?\d+)?( million)?|no bound)$/);
    }),
  );
  expect([formatRate(1_000), formatRate(0.1)]).toEqual(["1,000 a second", "8,640 a day"]);
});

test.each([
  ["365", 365n],
  ["62^5", 916_132_832n],
  ["10^6", 1_000_000n],
  ["916,132,832", 916_132_832n],
  ["916_132_832", 916_132_832n],
  ["1e9", 1_000_000_000n],
  ["2^1000", 2n ** 1000n],
])("parseCount(%j) is %d", (text, value) => {
  expect(parseCount(text)).toEqual({ text, count: value });
});

test.each([
  "",
  ..."0 -5 1.5 62^ 62^5^2 2^99999999 2^1001 0x10 9e999 1,".split(" "),
  String(2n ** 1000n + 1n),
  "9".repeat(2_000),
  `9^${"9".repeat(2_000)}`,
])("parseCount(%j) throws", (text) => {
  expect(() => parseCount(text)).toThrow(InvalidArgumentError);
});

test.each([
  ["1000", 1_000],
  ["60k/min", 1_000],
  ["86.4M/day", 1_000],
  ["8,640/d", 0.1],
  ["1e6/s", 1_000_000],
])("parseRate(%j) is %d a second", (text, perSecond) => {
  expect(parseRate(text)).toBeCloseTo(perSecond, 9);
});

test.each([
  ["10y", 315_569_520],
  ["36 h", 129_600],
  ["5min", 300],
])("parseSpan(%j) is %d s", (text, seconds) => {
  expect(parseSpan(text)).toBeCloseTo(seconds, 0);
});

test("parseRate and parseSpan reject what is no rate or no span", () => {
  for (const text of ["", "0", "-1", "1/fortnight", "fast", "1/", "1/constructor", "NaN", "1e999/s", "1e16/s"]) {
    expect(() => parseRate(text), text).toThrow(InvalidArgumentError);
  }
  for (const text of ["", "10", "0y", "-1d", "1 fortnight", "1valueOf", "y", "1e10y"]) {
    expect(() => parseSpan(text), text).toThrow(InvalidArgumentError);
  }
});

describe("the table of a scenario", () => {
  const quiet: Outcome = {
    scheme: schemeNamed("call-number"),
    generated: 1_000,
    repeats: 0,
    waited: 0,
    rejected: { clock_moved_backward: 0, number_space_exhausted: 0 },
    theory: { kind: "none", expected: 0, together: 1 },
    plausible: true,
  };
  const io: Partial<SchemesIo> = {
    call: { io: { stdout: {} } } as SchemesIo["call"],
    paint: (_, text) => text,
    table: (columns, rows) => rows.map((row) => columns.map(({ cellOf }) => cellOf(row)).join(" ")).join("\n"),
  };
  const linesOf = (outcome: Partial<Outcome>): readonly string[] =>
    scenarioTable(SCENARIOS[0] as Scenario, [{ ...quiet, ...outcome }], io as SchemesIo).split("\n");

  test("the table of a scenario has a row for each scheme in which something happened, and the others in a sentence", () => {
    expect(linesOf({}).slice(3)).toEqual(["no repeat, as promised: call-number"]);
    const birthday = (expected: number) => ({ kind: "birthday", expected, together: 1 }) as const;
    expect(linesOf({ theory: birthday(0.09) }).at(-1)).toBe("no repeat, and hardly one by chance: call-number");
    for (const outcome of [{ repeats: 1 }, { theory: birthday(0.1) }, { waited: 1 }, { plausible: false }]) {
      expect(linesOf(outcome).filter((line) => line.startsWith("call-number "))).toHaveLength(1);
    }
  });

  test("the table of a scenario shows a warning where count and theory disagree, and the sum of both kinds of refusals", () => {
    expect(linesOf({ repeats: 3, plausible: false }).join(" ")).toContain(
      "call-number: 3 repeats can't occur by chance where 0 are expected",
    );
    const rejected = { clock_moved_backward: 2, number_space_exhausted: 40 };
    expect(linesOf({ rejected }).find((line) => line.startsWith("call-number "))).toMatch(/ 42$/);
    expect(outcomeAsJson({ ...quiet, rejected })).toMatchObject({ rejected });
  });
});
