/** What people type for a count, a rate and a span is taken as they mean it, or refused at once; also what would take for ever. */
import { describe, expect, test } from "vitest";
import { rateIn, rateInWords, spanIn } from "../src/commands/load.js";
import { numberExpression } from "../src/commands/odds.js";
import { drawsForChance } from "../src/index.js";

describe("a number expression", () => {
  test.each([
    ["365", 365n],
    ["62^5", 916_132_832n],
    ["2^122", 2n ** 122n],
    ["10^6", 1_000_000n],
    ["916,132,832", 916_132_832n],
    ["916_132_832", 916_132_832n],
    ["2 * 36^4", 3_359_232n],
    ["1e9", 1_000_000_000n],
    ["1^999999999", 1n],
    ["2^1000", 2n ** 1000n],
    ["2^999", 2n ** 999n],
  ])("%s is %d", (text, value) => {
    expect(numberExpression(text)).toBe(value);
  });

  test.each([
    "",
    "0",
    "-5",
    "1.5",
    "62^",
    "^5",
    "62**5",
    "62^5^2",
    "2^99999999",
    "2^1001",
    String(2n ** 1000n + 1n),
    "0x10",
    "9e999",
    "many",
    "1,",
    "9".repeat(2_000),
    `9^${"9".repeat(2_000)}`,
    Array.from({ length: 5_000 }, () => "9^300").join("*"),
  ])("%.20s is refused", (text) => {
    expect(() => numberExpression(text)).toThrow(RangeError);
  });
});

describe("a rate and a span", () => {
  test.each([
    ["1000", 1_000],
    ["1000/s", 1_000],
    ["60k/min", 1_000],
    ["86.4M/day", 1_000],
    ["8,640/d", 0.1],
    ["1e6/s", 1_000_000],
  ])("%s is %d a second", (text, perSecond) => {
    expect(rateIn(text)).toBeCloseTo(perSecond, 9);
  });

  test.each(["", "0", "-1", "1/fortnight", "fast", "1/", "1/constructor", "NaN", "1e999/s", "1e16/s"])(
    "the rate %j is refused",
    (text) => {
      expect(() => rateIn(text)).toThrow(RangeError);
    },
  );

  test.each([
    ["10y", 315_569_520],
    ["90d", 7_776_000],
    ["36 h", 129_600],
    ["5min", 300],
  ])("%s is %d s", (text, seconds) => {
    expect(spanIn(text)).toBeCloseTo(seconds, 0);
  });

  test.each(["", "10", "0y", "-1d", "1 fortnight", "1valueOf", "y", "1e10y"])("the span %j is refused", (text) => {
    expect(() => spanIn(text)).toThrow(RangeError);
  });

  test("below one a second a rate is told by the day", () => {
    expect(rateInWords(1_000)).toBe("1,000 a second");
    expect(rateInWords(0.1)).toBe("8,640 a day");
  });
});

describe("the draws for a chance", () => {
  test.each([
    ["365", 23],
    ["62^5", 35_638],
    ["36^5", 9_156],
    ["33^5", 7_366],
    ["1024", 38],
    ["8191", 107],
  ])("a repeat among %s numbers is as likely as not from %d on", (space, drawn) => {
    expect(drawsForChance(numberExpression(space), 0.5)).toBe(drawn);
  });

  test("are found in spaces of any size, for any chance", () => {
    expect(drawsForChance(1n, 1e-9)).toBe(2);
    expect(drawsForChance(2n ** 122n, 0.5)).toBeCloseTo(2.7149e18, -15);
    expect(drawsForChance(2n ** 122n, 1e-9)).toBe(103_120_434_306_671);
    expect(drawsForChance(2n ** 999n, 0.999999)).toBeGreaterThan(1e150);
  });
});
