/** How likely a number can be guessed: compared with histories in which every guess is tried, and with plain sums. */
import { expect, inject, test } from "vitest";
import { seededRandom } from "../../../test/faults/seeded-random.js";
import { defineScheme } from "../src/define-scheme.js";
import { decimal } from "../src/encodings.js";
import { type Load, SCHEMES, type Scheme, type Source } from "../src/index.js";
import { contextWith, fieldsOf, minted, schemeNamed } from "./helpers.js";

const YEAR_SECONDS = 365.25 * 86_400;
const LOAD: Load = { perSecond: 1_000, seconds: 10 * YEAR_SECONDS, nodes: 10 };
const counted = SCHEMES.filter(({ name }) => ["call-number", "chibrary-4-16-20", "tickets"].includes(name)).map(
  (scheme) => [scheme.name, scheme] as const,
);

test.each(counted)("a reader of one number of %s can name another for certain: the number before it", (_, scheme) => {
  expect(scheme.facts.neighbor(LOAD)).toBe(1);
  const context = contextWith();
  const made = Array.from({ length: 50 }, () => minted(scheme, context));
  const counter = scheme.fields.find(({ name }) => name === "count" || name === "sequence")?.name as string;
  for (const [index, text] of made.slice(1).entries()) {
    const fields = fieldsOf(scheme, text);
    expect(scheme.format({ ...fields, [counter]: BigInt(fields[counter] as number) - 1n })).toBe(made[index]);
  }
});

test("the chance to name another number is that of the best of all guesses in 3,000 histories", () => {
  const random = seededRandom(inject("seed"));
  for (const [first, within] of [
    [0, "clock unit"],
    ["random", "process"],
  ] as const) {
    const scheme = clocked({ kind: "sequence", within, first });
    for (const each of [0.2, 1, 3]) {
      const seen = bestOfAllWays(scheme, each, random);
      const computed = scheme.facts.neighbor({ perSecond: each, seconds: UNITS, nodes: 1 });
      expect(Math.abs(seen - computed), `${within}, ${each} a unit: ${seen}, not ${computed}`).toBeLessThan(0.03);
    }
  }
});

test("the chance to name another drawn number is that another in its unit was drawn so", () => {
  const scheme = clocked({ kind: "random", from: 0, to: 63 });
  for (const each of [0.2, 1, 30]) {
    let missed = 0;
    let weight = Math.exp(-each);
    for (let others = 0; others < 200; others++) {
      missed += weight * (63 / 64) ** others;
      weight *= each / (others + 1);
    }
    expect(scheme.facts.neighbor({ perSecond: 4 * each, seconds: 1, nodes: 4 })).toBeCloseTo(1 - missed, 12);
  }
  const { neighbor } = schemeNamed("random-base62-5").facts;
  expect(neighbor({ perSecond: 1, seconds: 1_001, nodes: 1 }) * 62 ** 5).toBeCloseTo(1_000, 2);
  expect(neighbor({ perSecond: 1, seconds: 1, nodes: 1 })).toBe(0);
});

test("the chance to guess a number is that its node exists for a kept sequence, and its share for a drawn one", () => {
  expect(schemeNamed("chibrary-4-16-20").facts.guessed(LOAD)).toBe(10 / 2 ** 20);
  expect((schemeNamed("uuid").facts.guessed(LOAD) * 2 ** 122) / (LOAD.perSecond * LOAD.seconds)).toBeCloseTo(1, 9);
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
    encodings: [decimal("decimal", 9)],
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
    const context = contextWith({
      nowMs: 0,
      node: { given: 0 },
      random: { below: (bound) => Math.floor(random() * bound) },
    });
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
