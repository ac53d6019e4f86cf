/** What can be named by who has no number, or one: against histories in which every way to name one is tried, and against plain sums. */
import { describe, expect, inject, test } from "vitest";
import { seededRandom } from "../../../test/faults/seeded-random.js";
import { defineScheme } from "../src/define-scheme.js";
import { type Made, SCHEMES, type Scheme, type Source, schemeNamed } from "../src/index.js";
import { decimal } from "../src/spelling-rule.js";
import { fieldsOf } from "./readings.js";
import { minted, world } from "./world.js";

const YEAR_SECONDS = 365.25 * 86_400;
const LOAD: Made = { perSecond: 1_000, seconds: 10 * YEAR_SECONDS, nodes: 10 };
const counted = SCHEMES.filter(({ name }) => ["call-number", "chibrary-4-16-20", "tickets"].includes(name)).map(
  (scheme) => [scheme.name, scheme] as const,
);

describe("who has one number", () => {
  test.each(counted)("of %s can name another, whatever is shuffled: the one made before it", (_, scheme) => {
    expect(scheme.facts.neighbour(LOAD)).toBe(1);
    const context = world();
    const made = Array.from({ length: 50 }, () => minted(scheme, context));
    const counter = scheme.fields.find(({ name }) => name === "count" || name === "sequence")?.name as string;
    for (const [index, text] of made.slice(1).entries()) {
      const fields = fieldsOf(scheme, text);
      expect(scheme.format({ ...fields, [counter]: BigInt(fields[counter] as number) - 1n })).toBe(made[index]);
    }
  });

  test("names one that exists as often as the best of all ways to name one, in 3,000 histories", () => {
    const random = seededRandom(inject("seed"));
    for (const [first, within] of [
      [0, "clock unit"],
      ["random", "process"],
    ] as const) {
      const scheme = clocked({ kind: "sequence", within, first });
      for (const each of [0.2, 1, 3]) {
        const seen = bestOfAllWays(scheme, each, random);
        const told = scheme.facts.neighbour({ perSecond: each, seconds: UNITS, nodes: 1 });
        expect(Math.abs(seen - told), `${within}, ${each} a unit: ${seen}, not ${told}`).toBeLessThan(0.03);
      }
    }
  });

  test("names a drawn one as often as any of those that came beside it was drawn so", () => {
    const scheme = clocked({ kind: "random", from: 0, to: 63 });
    for (const each of [0.2, 1, 30]) {
      let missed = 0;
      let weight = Math.exp(-each);
      for (let others = 0; others < 200; others++) {
        missed += weight * (63 / 64) ** others;
        weight *= each / (others + 1);
      }
      expect(scheme.facts.neighbour({ perSecond: 4 * each, seconds: 1, nodes: 4 })).toBeCloseTo(1 - missed, 12);
    }
    const { neighbour } = schemeNamed("random-base62-5").facts;
    expect(neighbour({ perSecond: 1, seconds: 1_001, nodes: 1 }) * 62 ** 5).toBeCloseTo(1_000, 2);
    expect(neighbour({ perSecond: 1, seconds: 1, nodes: 1 })).toBe(0);
  });

  test("is told a chance for any load, without a jump where the sum changes to its series", () => {
    for (const { facts } of SCHEMES) {
      let before = 0;
      for (let exponent = -8; exponent <= 12; exponent += 0.01) {
        const chance = facts.neighbour({ perSecond: 10 ** exponent, seconds: 1e13, nodes: 3 });
        expect(chance).toBeGreaterThanOrEqual(before * (1 - 1e-9));
        // Never much more than as many times as there are numbers.
        expect(chance).toBeLessThanOrEqual(before === 0 ? 1 : Math.min(1, before * 1.03));
        before = chance;
      }
    }
  });
});

describe("who has no number", () => {
  test("names the first of a count, and of one kept by a node the first, as often as there is that node", () => {
    for (const name of ["call-number", "tickets"]) expect(schemeNamed(name).facts.guessed(LOAD)).toBe(1);
    expect(schemeNamed("chibrary-4-16-20").facts.guessed(LOAD)).toBe(10 / 2 ** 20);
  });

  test("names a drawn one as often as it is among all of them", () => {
    expect((schemeNamed("uuid").facts.guessed(LOAD) * 2 ** 122) / (LOAD.perSecond * LOAD.seconds)).toBeCloseTo(1, 9);
  });
});

const UNITS = 16;
const HISTORIES = 3_000;

function clocked(source: Source): Scheme {
  return defineScheme({
    name: "tiny",
    title: "Tiny",
    fields: [
      { name: "unit", width: { bits: 4 }, source: { kind: "clock", unitMs: 1_000, epochMs: 0 } },
      { name: "node", width: { bits: 2 }, source: { kind: "node", from: "given" } },
      { name: "last", width: { bits: 6 }, source },
    ],
    spellings: [decimal("decimal", 9)],
  });
}

/**
 * A reader has one of the numbers of the middle units, and knows its fields. Every step in units and in counts from there is tried in all histories;
 * for each count that may be read the best is taken.
 */
function bestOfAllWays(scheme: Scheme, each: number, random: () => number): number {
  const isSequenceNew = scheme.fields.some(
    ({ source }) => source.kind === "sequence" && source.within === "clock unit",
  );
  const hits = new Map<string, number[]>();
  let read = 0;
  for (let history = 0; history < HISTORIES; history++) {
    const context = world({ nowMs: 0, node: { given: 0 }, random: { below: (bound) => Math.floor(random() * bound) } });
    const made: { unit: number; last: number }[] = [];
    for (let at = -Math.log(1 - random()) / each; at < UNITS; at -= Math.log(1 - random()) / each) {
      context.clock.at = at * 1_000;
      made.push(fieldsOf(scheme, minted(scheme, context)) as { unit: number; last: number });
    }
    const readable = made.filter(({ unit }) => unit >= 4 && unit < 12);
    const exists = new Set(made.map(({ unit, last }) => `${unit} ${last}`));
    for (const { unit, last } of readable) {
      read++;
      // A count that began anywhere says nothing by itself.
      const known = isSequenceNew ? `${last}` : "";
      const of = hits.get(known) ?? WAYS.map(() => 0);
      for (const [index, [units, counts, isCount]] of WAYS.entries()) {
        const named = isCount ? counts : (last + counts + 64) % 64;
        if (exists.has(`${unit + units} ${named}`) && !(units === 0 && named === last))
          of[index] = (of[index] as number) + 1;
      }
      hits.set(known, of);
    }
  }
  return [...hits.values()].reduce((sum, of) => sum + Math.max(...of), 0) / read;
}

const STEPS = [-2, -1, 0, 1, 2];

/** So many units further; so many counts further, or this very count. */
const WAYS: readonly (readonly [units: number, counts: number, isCount: boolean])[] = [false, true].flatMap((isCount) =>
  STEPS.flatMap((units) => STEPS.map((counts) => [units, counts, isCount] as const)),
);
