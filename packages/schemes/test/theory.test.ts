/** The parts of a simulation alone: how many repeats are expected and how many are plausible, its random numbers and its MAC addresses. */
import { expect, test } from "vitest";
import { hashOfMacs } from "../src/generating.js";
import { seededRandom } from "../src/simulation/random.js";
import { distinctMacs, MACS_WITH_ONE_HASH } from "../src/simulation/scenarios.js";
import { expectedRepeats, isPlausible } from "../src/simulation/theory.js";

test("the expected repeats are the mean over all ways to draw", () => {
  // All 4^5 ways to draw five of four values, and those in which the first value has half of the chance.
  for (const shares of [
    [0.25, 0.25, 0.25, 0.25],
    [0.5, 1 / 6, 1 / 6, 1 / 6],
  ]) {
    let mean = 0;
    for (let way = 0; way < 4 ** 5; way++) {
      const values = Array.from({ length: 5 }, (_, place) => Math.floor(way / 4 ** place) % 4);
      const chance = values.reduce((product, value) => product * (shares[value] as number), 1);
      mean += chance * (values.length - new Set(values).size);
    }
    const classes = shares.map((share) => ({ count: 1, share }));
    expect(expectedRepeats(classes, 5)).toBeCloseTo(mean, 12);
  }
});

test("the expected repeats keep their digits where a difference loses them, on both sides of the series", () => {
  const space = 2 ** 122;
  const ofSpace = expectedRepeats([{ count: space, share: 1 / space }], 20_000);
  expect(ofSpace / ((20_000 * 19_999) / 2 / space)).toBeCloseTo(1, 12);
  for (const drawn of [99, 100, 101, 1_000, 100_000]) {
    const exact = drawn - 1_000 * (1 - 0.999 ** drawn);
    expect(expectedRepeats([{ count: 1_000, share: 1 / 1_000 }], drawn) / exact).toBeCloseTo(1, 9);
  }
  expect(expectedRepeats([{ count: 10, share: 0.1 }], 0)).toBe(0);
  expect(expectedRepeats([{ count: 1, share: 1 }], 7)).toBe(6);
});

test("a plausible count is within five standard deviations, and exact where the theory is certain", () => {
  const birthday = (expected: number, together = 1) => ({ kind: "birthday", expected, together }) as const;
  for (const [repeats, theory, plausible] of [
    [10_480, birthday(10_000), true],
    [9_520, birthday(10_000), true],
    [10_520, birthday(10_000), false],
    [9_480, birthday(10_000), false],
    [1, birthday(0.01), true],
    [0, birthday(5), true],
    [0, birthday(13), false],
    [1, birthday(1e-29), false],
    [100, birthday(0.01, 100), true],
    [1, { kind: "none", expected: 0, together: 1 }, false],
    [17, { kind: "overlap", expected: 17, together: 1 }, true],
    [18, { kind: "overlap", expected: 17, together: 1 }, false],
  ] as const) {
    expect(isPlausible(repeats, theory), `${repeats} of ${JSON.stringify(theory)}`).toBe(plausible);
  }
});

test("simulated MAC addresses have one hash in all 32 bits, or differ in the lowest ten", () => {
  const [one, other] = MACS_WITH_ONE_HASH;
  expect(one).not.toBe(other);
  expect(hashOfMacs([one])).toBe(hashOfMacs([other]));
  const macs = distinctMacs(1_000, seededRandom("macs"), []);
  expect(new Set(macs.map((mac) => BigInt.asUintN(10, hashOfMacs([mac])))).size).toBe(1_000);
});

test("similar seeds give very different draws, and gaps have the mean and deviation of random moments", () => {
  const drawn = Array.from({ length: 1_000 }, (_, seed) => seededRandom(`${seed} one-hash`).below(2 ** 53 - 1));
  expect(new Set(drawn).size).toBe(1_000);
  expect(Math.abs(drawn.filter((value) => value < 2 ** 52).length - 500)).toBeLessThan(100);
  const random = seededRandom("gaps");
  const gaps = Array.from({ length: 20_000 }, () => random.gap(40));
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  const deviation = Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length);
  expect(Math.abs(mean - 40)).toBeLessThan(1.5);
  expect(Math.abs(deviation - 40)).toBeLessThan(2.5);
});
