/** The sums behind a repeat, against the vectors, against plain products, and against each other. */
import { DIGITS } from "@callnumber/protocol/codec";
import fc from "fast-check";
import { expect, test } from "vitest";
import { approximateChanceOfRepeat, chanceOfRepeat, drawsForChance, logOfNoCellTwice } from "../src/birthday.js";
import { vectorsOf } from "./helpers.js";

const {
  rule,
  probabilities,
  drawsForHalf: halves,
} = vectorsOf<{
  readonly probabilities: readonly {
    readonly in: { readonly space: string; readonly drawn: number };
    readonly pCollision: string;
    readonly approx: string;
  }[];
  readonly drawsForHalf: Readonly<Record<string, number>>;
  readonly rule: string;
}>("random_base62_5");

test("five characters folded to one case repeat as among 43,590,579, not 36^5: letters come twice as often", () => {
  const shares = new Map<string, number>();
  for (const digit of DIGITS) shares.set(digit.toLowerCase(), (shares.get(digit.toLowerCase()) ?? 0) + 1 / 62);
  expect(shares.size).toBe(36);
  const twoAlike = [...shares.values()].reduce((sum, share) => sum + share ** 2, 0) ** 5;
  expect(1 / twoAlike / (3_844 / 114) ** 5).toBeCloseTo(1, 12);
  expect(rule).toContain(`(3844/114)^5 = ${Math.floor(1 / twoAlike)}`);
  expect(drawsForChance(Math.floor(1 / twoAlike), 0.5)).toBe(7_774);
});

test("the chance of a repeat is that of all 21 vectors in all twelve digits, exact and by the rule of thumb", () => {
  expect(probabilities).toHaveLength(21);
  for (const { in: given, pCollision, approx } of probabilities) {
    expect(chanceOfRepeat(Number(given.space), given.drawn).toFixed(12)).toBe(pCollision);
    expect(approximateChanceOfRepeat(Number(given.space), given.drawn).toFixed(12)).toBe(approx);
  }
});

test("the chance of a repeat reaches one half at the draws of the vectors, and not one earlier", () => {
  expect(Object.keys(halves)).toHaveLength(6);
  expect(drawsForChance(1, 1e-9)).toBe(2);
  expect(drawsForChance(2 ** 122, 1e-9)).toBe(103_120_434_306_671);
  for (const [name, drawn] of Object.entries(halves)) {
    const [base, power = 1] = name.split("^").map(Number) as [number, number?];
    const space = base ** power;
    expect(drawsForChance(space, 0.5)).toBe(drawn);
    expect(chanceOfRepeat(space, drawn)).toBeGreaterThanOrEqual(0.5);
    expect(chanceOfRepeat(space, drawn - 1)).toBeLessThan(0.5);
  }
});

test("the chance of a repeat is a product of fractions, for every small space and number of draws", () => {
  for (let space = 1; space <= 40; space++) {
    for (let drawn = 0; drawn <= space + 2; drawn++) {
      expect(chanceOfRepeat(space, drawn), `${drawn} of ${space}`).toBeCloseTo(1 - allDifferent(space, drawn), 13);
    }
  }
});

test("the chance of a repeat is the same by the series for many draws as by the sum, in eleven digits", () => {
  for (const space of [2 ** 34, 2 ** 40, 62 ** 8, 2 ** 122]) {
    const before = chanceOfRepeat(space, 99_999);
    const [at, after] = [chanceOfRepeat(space, 100_000), chanceOfRepeat(space, 100_001)];
    // The step from one number of draws to the next is (1 - chance) * drawn / space, by its definition.
    expect((at - before) / ((1 - before) * (99_999 / space))).toBeCloseTo(1, space > 2 ** 50 ? 9 : 4);
    const exact = Math.log1p(-before) + Math.log1p(-99_999 / space) + Math.log1p(-100_000 / space);
    expect(after / -Math.expm1(exact)).toBeCloseTo(1, 11);
  }
});

test("the chance of a repeat rises with the draws, and is never below 0 or above 1", () => {
  const space = fc.bigInt({ min: 1n, max: 2n ** 128n }).map(Number);
  const property = fc.property(space, fc.nat({ max: 300_000 }), fc.nat({ max: 1_000 }), (space, drawn, more) => {
    const [fewer, greater] = [chanceOfRepeat(space, drawn), chanceOfRepeat(space, drawn + more)];
    expect(fewer).toBeGreaterThanOrEqual(0);
    expect(greater).toBeLessThanOrEqual(1);
    expect(greater).toBeGreaterThanOrEqual(fewer * (1 - 1e-12));
  });
  fc.assert(property, { numRuns: 200 });
});

test("the chance of a repeat at random moments is the Poisson sum over how many came", () => {
  for (const [cells, each] of [
    [8, 0.01],
    [8, 0.09],
    [8, 0.11],
    [8, 0.5],
    [64, 0.2],
    [1_000, 0.003],
  ] as const) {
    let none = 0;
    let weight = Math.exp(-cells * each);
    for (let came = 0; came <= cells; came++) {
      none += weight * allDifferent(cells, came);
      weight *= (cells * each) / (came + 1);
    }
    expect(logOfNoCellTwice(cells, each) / Math.log(none)).toBeCloseTo(1, 9);
  }
  // So few that only the square is left.
  expect(logOfNoCellTwice(1e30, 1e-12) / (-1e30 * 1e-24 * 0.5)).toBeCloseTo(1, 11);
});

function allDifferent(space: number, drawn: number): number {
  let chance = 1;
  for (let before = 0; before < drawn; before++) chance *= Math.max(0, space - before) / space;
  return chance;
}
