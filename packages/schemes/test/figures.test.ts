/** Figures of any size are readable, and never say what is not so: nothing below certainty is called certain, nothing above none, none. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chanceInWords, countInWords, spanInWords, YEAR_S } from "../src/commands/figures.js";

describe("figures", () => {
  test.each([
    [0, "0"],
    [0.491, "0.491"],
    [1, "1"],
    [23, "23"],
    [38.25, "38.3"],
    [4_096, "4,096"],
    [999_999, "999,999"],
    [999_999.6, "1 million"],
    [4_194_304, "4.19 million"],
    [999_999_999, "1e9"],
    [4_294_967_296, "4.29e9"],
    [2 ** 122, "5.32e36"],
    [Number.POSITIVE_INFINITY, "no bound"],
  ])("the count %d is written %j", (value, words) => {
    expect(countInWords(value)).toBe(words);
  });

  test.each([
    [0, "none"],
    [9.4e-20, "1 in 1.06e19"],
    [1 / 916_132_832, "1 in 916 million"],
    [1e-6, "1 in a million"],
    [0.00099, "1 in 1,010"],
    [0.38809860827, "38.8 %"],
    [0.99949, "99.9 %"],
    [0.9999, "nearly certain"],
    [1, "certain"],
  ])("the chance %d is written %j", (chance, words) => {
    expect(chanceInWords(chance)).toBe(words);
  });

  test.each([
    [0.0005, "0.5 ms"],
    [1, "1 s"],
    [90, "90 s"],
    [3_600, "60 minutes"],
    [30_600, "8.5 hours"],
    [10 * 86_400, "10 days"],
    [10 * YEAR_S, "10 years"],
    [17.2e6 * YEAR_S, "17.2 million years"],
    [Number.POSITIVE_INFINITY, "for ever"],
  ])("the span of %d s is written %j", (seconds, words) => {
    expect(spanInWords(seconds)).toBe(words);
  });

  test("are short whatever they are, and nothing but 0 is none, nothing but 1 certain", () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (chance) => {
        const words = chanceInWords(chance);
        expect(words.length).toBeLessThan(18);
        expect(words).not.toContain("no bound");
        expect(words === "none").toBe(chance === 0);
        expect(words === "certain").toBe(chance === 1);
        expect(words).not.toContain("100 %");
      }),
    );
    fc.assert(
      fc.property(fc.double({ min: 0, noNaN: true }), (value) => {
        expect(countInWords(value)).toMatch(/^([\d,.]+(e-?\d+)?( million)?|no bound)$/);
        expect(spanInWords(value).length).toBeLessThan(20);
      }),
    );
  });
});
