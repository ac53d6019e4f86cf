/** The two sides that are compared: what is counted is exact, and what is expected is right, by other ways to both. */
import { describe, expect, test } from "vitest";
import { chanceOf } from "../src/collisions/chance.js";
import { expectedRepeats } from "../src/collisions/expected-repeats.js";
import { type Outcome, outcomesOf, type Play, WORLDS } from "../src/collisions/index.js";
import { macsToldApart, macsWithOneHash } from "../src/collisions/mac-addresses.js";
import { isPlausible } from "../src/collisions/plausible.js";
import { defineScheme } from "../src/define-scheme.js";
import { SCHEMES, type Scheme, schemeNamed } from "../src/index.js";
import { decimal } from "../src/spelling-rule.js";

const worldsNamed = (...names: readonly string[]) => WORLDS.filter(({ name }) => names.includes(name));

function play(given: Partial<Play>): readonly Outcome[] {
  return [
    ...outcomesOf({ schemes: SCHEMES, worlds: WORLDS, nodes: 4, numbers: 1_000, perSecond: 200, seed: 1, ...given }),
  ];
}

/** As it is, and writes down what it mints. */
function recorded(scheme: Scheme): { readonly scheme: Scheme; readonly texts: string[] } {
  const texts: string[] = [];
  const mint: Scheme["mint"] = (context) => {
    const step = scheme.mint(context);
    if (step.outcome === "minted") texts.push(step.text);
    return step;
  };
  return { scheme: { ...scheme, mint }, texts };
}

/** Twenty values a second and node. */
const narrow = defineScheme({
  name: "narrow",
  title: "One of twenty",
  fields: [
    { name: "seconds", width: { bits: 32 }, source: { kind: "clock", unitMs: 1_000, epochMs: 0 } },
    { name: "pid", width: { bits: 16 }, source: { kind: "node", from: "pid" } },
    { name: "random", width: { bits: 5 }, source: { kind: "random", from: 3, to: 22 } },
  ],
  spellings: [decimal("decimal", 20)],
});

/** One of a million, of nobody. */
const wide = defineScheme({
  name: "wide",
  title: "Twenty bits",
  fields: [{ name: "random", width: { bits: 20 }, source: { kind: "random", from: 0, to: 2 ** 20 - 1 } }],
  spellings: [decimal("decimal", 20)],
});

/** Of a hundred values, half come twice as often as the others. */
const uneven = defineScheme({
  name: "uneven",
  title: "Two digits of a number below 150",
  fields: [
    { name: "seconds", width: { bits: 32 }, source: { kind: "clock", unitMs: 1_000, epochMs: 0 } },
    { name: "digits", width: { digits: 2 }, source: { kind: "remainder", drawnBelow: 150 } },
  ],
  spellings: [decimal("decimal", 20)],
});

/** An ObjectId whose counter goes round after 256. */
const shortRing = defineScheme({
  name: "short-ring",
  title: "Counts from anywhere",
  fields: [
    { name: "seconds", width: { bits: 32 }, source: { kind: "clock", unitMs: 1_000, epochMs: 0 } },
    { name: "pid", width: { bits: 16 }, source: { kind: "node", from: "pid" } },
    { name: "counter", width: { bits: 8 }, source: { kind: "sequence", within: "process", first: "random" } },
  ],
  spellings: [decimal("decimal", 20)],
});

describe("repeats", () => {
  test("are as many as a plain comparison of all numbers with those before finds", () => {
    let repeatCount = 0;
    for (const original of [...SCHEMES, narrow, shortRing]) {
      for (const world of WORLDS) {
        const { scheme, texts } = recorded(original);
        const [outcome] = play({ schemes: [scheme], worlds: [world], numbers: 300, perSecond: 20 });
        const repeats = texts.filter((text, index) => texts.indexOf(text) < index).length;
        expect({ minted: outcome?.minted, repeats: outcome?.repeats }).toEqual({ minted: texts.length, repeats });
        repeatCount += repeats;
      }
    }
    expect(repeatCount).toBeGreaterThan(1_000);
  });

  test("that no theory explains are told, in one number of a thousand already", () => {
    const original = schemeNamed("twitter-snowflake");
    let count = 0;
    let before = "";
    const stutters: Scheme = {
      ...original,
      mint: (context) => {
        const step = original.mint(context);
        if (step.outcome !== "minted") return step;
        const text = ++count % 1_000 === 0 ? before : step.text;
        before = step.text;
        return { ...step, text };
      },
    };
    expect(play({ schemes: [stutters], worlds: worldsNamed("good-clocks") })).toMatchObject([
      { repeats: 1, plausible: false },
    ]);
  });

  test("that must be there and are not are told, too", () => {
    const original = schemeNamed("twitter-snowflake");
    let count = 0;
    const unique: Scheme = {
      ...original,
      mint: (context) => {
        const step = original.mint(context);
        return step.outcome === "minted" ? { ...step, text: String(count++) } : step;
      },
    };
    expect(play({ schemes: [unique], worlds: worldsNamed("one-number") })).toMatchObject([
      { repeats: 0, plausible: false },
    ]);
  });

  test("of draws that are not even are told", () => {
    const lopsided: Scheme = {
      ...narrow,
      mint: (context) =>
        narrow.mint({ ...context, random: { below: (bound) => Math.floor(context.random.below(bound) / 2) } }),
    };
    const asked = { worlds: worldsNamed("good-clocks"), numbers: 4_000 };
    expect(play({ ...asked, schemes: [narrow] })).toMatchObject([{ plausible: true }]);
    expect(play({ ...asked, schemes: [lopsided] })).toMatchObject([{ plausible: false }]);
  });
});

describe("the mean of repeats", () => {
  test("is that of all ways to draw, counted", () => {
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

  test("has its digits where they are lost in a difference, and on both sides of the series", () => {
    const space = 2 ** 122;
    expect(expectedRepeats([{ count: space, share: 1 / space }], 20_000) / ((20_000 * 19_999) / 2 / space)).toBeCloseTo(
      1,
      12,
    );
    for (const drawn of [99, 100, 101, 1_000, 100_000]) {
      const exact = drawn - 1_000 * (1 - 0.999 ** drawn);
      expect(expectedRepeats([{ count: 1_000, share: 1 / 1_000 }], drawn) / exact).toBeCloseTo(1, 9);
    }
    expect(expectedRepeats([{ count: 10, share: 0.1 }], 0)).toBe(0);
    expect(expectedRepeats([{ count: 10, share: 0.1 }], 1)).toBeCloseTo(0, 15);
    expect(expectedRepeats([{ count: 1, share: 1 }], 7)).toBe(6);
  });

  test.each([
    { scheme: wide, world: "good-clocks", numbers: 2_000, seeds: 20 },
    { scheme: schemeNamed("millis-41-10-13"), world: "heavy-rate", numbers: 2_000, seeds: 3 },
    { scheme: uneven, world: "clock-back-restart", numbers: 300, seeds: 20 },
    { scheme: narrow, world: "clock-back", numbers: 300, seeds: 20 },
  ])("is met over many seeds: $scheme.name in $world", ({ scheme, world, numbers, seeds }) => {
    let seen = 0;
    let expected = 0;
    for (let seed = 0; seed < seeds; seed++) {
      for (const { repeats, theory } of play({ schemes: [scheme], worlds: worldsNamed(world), numbers, seed })) {
        seen += repeats;
        expected += theory.expected;
      }
    }
    expect(expected).toBeGreaterThan(7);
    expect(Math.abs(seen - expected)).toBeLessThan(4 * Math.sqrt(expected));
  });

  test("is met where two count from anywhere, although repeats come many together", () => {
    let seen = 0;
    let expected = 0;
    for (let seed = 0; seed < 1_500; seed++) {
      for (const { repeats, theory } of play({
        schemes: [shortRing],
        worlds: worldsNamed("cloned"),
        nodes: 2,
        numbers: 64,
        perSecond: 8,
        seed,
      })) {
        seen += repeats;
        expected += theory.expected;
      }
    }
    expect(expected).toBeGreaterThan(500);
    expect(seen / expected).toBeGreaterThan(0.7);
    expect(seen / expected).toBeLessThan(1.3);
  });
});

describe("what is plausible", () => {
  const birthday = (expected: number, together = 1) => ({ kind: "birthday", expected, together }) as const;

  test("is what lies within five standard deviations, where there are many", () => {
    expect(isPlausible(10_000 + 480, birthday(10_000))).toBe(true);
    expect(isPlausible(10_000 - 480, birthday(10_000))).toBe(true);
    expect(isPlausible(10_000 + 520, birthday(10_000))).toBe(false);
    expect(isPlausible(10_000 - 520, birthday(10_000))).toBe(false);
  });

  test("is one where few are expected, and not one where none can be", () => {
    expect(isPlausible(1, birthday(0.01))).toBe(true);
    expect(isPlausible(0, birthday(5))).toBe(true);
    expect(isPlausible(0, birthday(13))).toBe(false);
    expect(isPlausible(1, birthday(1e-29))).toBe(false);
    expect(isPlausible(0, birthday(1e-29))).toBe(true);
    expect(isPlausible(100, birthday(0.01, 100))).toBe(true);
  });

  test("is only what must be, where the theory is certain", () => {
    expect(isPlausible(0, { kind: "none", expected: 0, together: 1 })).toBe(true);
    expect(isPlausible(1, { kind: "none", expected: 0, together: 1 })).toBe(false);
    expect(isPlausible(17, { kind: "overlap", expected: 17, together: 1 })).toBe(true);
    expect(isPlausible(18, { kind: "overlap", expected: 17, together: 1 })).toBe(false);
  });
});

describe("MAC addresses", () => {
  /** Java's own words: s[0]*31^(n-1) + … + s[n-1], in 32 bits. */
  const hashCode = (mac: string): bigint =>
    BigInt.asIntN(
      32,
      [...mac.replaceAll(":", "").toUpperCase()].reduce(
        (hash, character) => 31n * hash + BigInt(character.charCodeAt(0)),
        0n,
      ),
    );

  test("with one hash are two, and have it in all 32 bits", () => {
    const [one, other] = macsWithOneHash(chanceOf("macs"));
    expect(one).not.toBe(other);
    expect(hashCode(one)).toBe(hashCode(other));
  });

  test("that are told apart differ in the lowest ten bits, as many as there may be nodes", () => {
    const macs = macsToldApart(1_000, chanceOf("macs"));
    expect(new Set(macs.map((mac) => BigInt.asUintN(10, hashCode(mac)))).size).toBe(1_000);
  });
});

describe("chance", () => {
  test("draws each value as often as others, for bounds on both sides of a word", () => {
    const chance = chanceOf("even");
    for (const bound of [3, 10, 3 * 2 ** 30, 3 * 2 ** 51]) {
      const counts = [0, 0, 0];
      for (let draw = 0; draw < 30_000; draw++) {
        const third = Math.floor((3 * chance.below(bound)) / bound);
        counts[third] = (counts[third] as number) + 1;
      }
      const expected = bound === 10 ? [12_000, 9_000, 9_000] : [10_000, 10_000, 10_000];
      counts.forEach((count, third) => {
        expect(Math.abs(count - (expected[third] as number))).toBeLessThan(5 * Math.sqrt(10_000));
      });
    }
    expect(chance.below(1)).toBe(0);
  });

  test("of near texts is far apart", () => {
    const first = (text: string) => chanceOf(text).below(2 ** 53 - 1);
    const drawn = Array.from({ length: 1_000 }, (_, seed) => first(`${seed} one-hash`));
    expect(new Set(drawn).size).toBe(1_000);
    expect(drawn.filter((value) => value < 2 ** 52).length).toBeGreaterThan(400);
    expect(drawn.filter((value) => value < 2 ** 52).length).toBeLessThan(600);
  });

  test("lets events come at random moments: gaps of the mean that was asked for, and as far apart as they are long", () => {
    const chance = chanceOf("gaps");
    const gaps = Array.from({ length: 20_000 }, () => chance.gap(40));
    const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
    const deviation = Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length);
    expect(Math.abs(mean - 40)).toBeLessThan(1.5);
    expect(Math.abs(deviation - 40)).toBeLessThan(2.5);
  });
});
