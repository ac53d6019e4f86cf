/**
 * Each figure of the comparison, computed again in another way: by generating until it ends, by counting every number of a tiny scheme, by a
 * plain sum, or by simulating histories and counting repeats.
 */
import { describe, expect, inject, test } from "vitest";
import { seededRandom } from "../../../test/faults/seeded-random.js";
import { sized } from "../../../test/size-of-run.js";
import { chanceOfRepeat } from "../src/birthday.js";
import { YEAR_S } from "../src/commands/format.js";
import { callNumberText, planLength, planSplit, planSplits } from "../src/commands/plan.js";
import { defineScheme } from "../src/define-scheme.js";
import { decimal } from "../src/encodings.js";
import { nodeSourcesOf } from "../src/fields.js";
import { type Field, type Load, SCHEMES, type Scheme, type SequenceScope, type Source } from "../src/index.js";
import { contextWith, generatedStep, mustMatch, schemeNamed } from "./helpers.js";

const DAY_SECONDS = 86_400;
const YEAR_SECONDS = 365.25 * DAY_SECONDS;
const byName = SCHEMES.map((scheme) => [scheme.name, scheme] as const);
const withClock = byName.filter(([, { facts }]) => facts.endsMs !== undefined);

const clock = { kind: "clock", unitMs: 1_000, epochMs: 0 } as const;
const node = { kind: "node", from: "given" } as const;
const hashed = { kind: "node", from: "mac hash" } as const;

describe("figures that are known", () => {
  const facts = (name: string) => schemeNamed(name).facts;

  const TABLE = `
    call-number; 47.0; 8; shuffled; one request for each run; how many; counter set back
    chibrary-4-16-20; 40.0; 8; within a node; a number for each node; where, how many; two nodes alike, counter set back
    chibrary-3-32-8-4; 44.0; 8; by time; a number for each node; when, where; clock goes back, two nodes alike
    mysql-13-6-1; 64.0; 20; by time; a number for each node; when, where; two nodes alike, birthday
    mysql-11-9; 66.4; 20; by time; nothing; when; birthday
    millis-41-10-13; 64.0; 20; by time; a number for each node; when, where; two nodes alike, birthday
    snowflake-2015; 63.0; 19; by time; nothing; when, where; clock goes back, two nodes alike
    twitter-snowflake; 63.0; 19; by time; a number for each node; when, where; clock goes back, two nodes alike
    uuid; 122.0; 36; none; nothing; nothing; birthday
    uuidv7; 122.0; 36; by time; nothing; when; birthday
    objectid; 96.0; 24; by time; nothing; when, where, how many; two nodes alike
    ulid; 128.0; 26; by time; nothing; when; birthday
    ksuid; 160.0; 27; by time; nothing; when; birthday
    nanoid; 126.0; 21; none; nothing; nothing; birthday
    tickets; 64.0; 20; within a node; one request for each number; where, how many; two nodes alike, counter set back
    random-base62-5; 29.8; 5; none; nothing; nothing; birthday
    rand64; 64.0; 20; none; nothing; nothing; birthday
    hash-12; 48.0; 12; none; nothing; nothing; same content, birthday`;
  const rows = TABLE.trim()
    .split("\n")
    .map((row) => row.trim().split("; "));

  test("the table of known figures has every scheme", () => {
    expect(rows.map(([name]) => name)).toEqual(SCHEMES.map(({ name }) => name));
  });

  test.each(rows)("%s has %s bits in %s characters; its order is %s", (name = "", ...row) => {
    const { bits, characters, order, coordination, reveals, failures } = facts(name);
    const others = failures.filter((failure) => failure !== "space used up");
    const found = [bits.toFixed(1), String(characters), order, coordination, reveals.join(", "), others.join(", ")];
    expect(found).toEqual(row);
    expect(failures.at(-1)).toBe("space used up");
  });

  test("38 Snowflakes with nodes of their MAC addresses repeat one more often than not, with given nodes never", () => {
    const made = { perSecond: 100_000, seconds: DAY_SECONDS };
    expect(facts("snowflake-2015").repeats({ ...made, nodes: 38 })).toBeCloseTo(chanceOfRepeat(1_024, 38), 12);
    expect(facts("snowflake-2015").repeats({ ...made, nodes: 38 })).toBeGreaterThan(0.5);
    expect(facts("twitter-snowflake").repeats({ ...made, nodes: 1_024 })).toBe(0);
    expect(facts("twitter-snowflake").repeats({ ...made, nodes: 1_025 })).toBe(1);
  });

  test("five random characters repeat as the birthday formula predicts, and a UUID hardly ever", () => {
    expect(facts("random-base62-5").repeats({ perSecond: 1, seconds: 35_638, nodes: 1 })).toBe(
      chanceOfRepeat(62 ** 5, 35_638),
    );
    const chance = facts("uuid").repeats({ perSecond: 1e9, seconds: 100 * YEAR_SECONDS, nodes: 1 });
    expect(chance / ((1e9 * 100 * YEAR_SECONDS) ** 2 / 2 / 2 ** 122)).toBeCloseTo(1, 0);
  });
});

test.each(withClock)(
  "%s ends with the last millisecond of its clock, and lasts from its first to that",
  (_, scheme) => {
    const endsMs = scheme.facts.endsMs as number;
    const least = scheme.fields.map(({ name, source }) => [name, source.kind === "fixed" ? source.value : 0] as const);
    const first = scheme.parse(scheme.format(Object.fromEntries(least)));
    const startsMs = mustMatch(first).timeMs as number;
    const at = (nowMs: number) => () => scheme.generate(contextWith({ nowMs }));
    expect(at(startsMs)()).toMatchObject({ outcome: "generated" });
    expect(at(startsMs - 1)).toThrow(RangeError);
    expect(at(endsMs)()).toMatchObject({ outcome: "generated" });
    expect(at(endsMs + 1)).toThrow(expect.objectContaining({ code: "number_space_exhausted" }));
    expect(scheme.facts.lastsSeconds(1)).toBe((endsMs + 1 - startsMs) / 1_000);
  },
);

test.each(["chibrary-3-32-8-4", "twitter-snowflake", "snowflake-2015"])(
  "%s makes as many a second as it generates before it waits",
  (name) => {
    const scheme = schemeNamed(name);
    const context = contextWith();
    let generated = 0;
    let step = scheme.generate(context);
    for (; step.outcome === "generated"; step = scheme.generate(context)) generated++;
    const unitsASecond = 1_000 / (step.untilMs - context.clock.at);
    expect(generated * unitsASecond * scheme.facts.nodes).toBe(scheme.facts.perSecond);
  },
);

test.each(byName)("%s generates numbers in the order of its facts", (_, scheme) => {
  const random = seededRandom(inject("seed"));
  const context = contextWith({ random: { below: (bound) => Math.floor(random() * bound) } });
  const numbers = Array.from({ length: 200 }, () => {
    context.clock.at += 1_000;
    return mustMatch(scheme.parse(generatedStep(scheme.generate(context)).text)).number;
  });
  const rises = numbers.slice(1).every((number, index) => number > (numbers[index] as bigint));
  expect(rises).toBe(!["none", "shuffled"].includes(scheme.facts.order));
});

describe("a plan", () => {
  const load = { messages: 1e9, years: 20, processes: 10 };

  test("a plan has the figures of the schemes that it plans", () => {
    const seconds = 10 * YEAR_S;
    const made = { messages: 1_000 * seconds, years: 10, processes: 10 };
    const callNumber = schemeNamed("call-number").facts;
    const { years, bits, numbers } = planLength(8, made);
    const yearsOfBits = (years * 2 ** bits) / Number(numbers);
    expect(yearsOfBits * YEAR_S).toBeCloseTo(callNumber.lastsSeconds(1_000), -3);
    const drawn = schemeNamed("random-base62-5").facts.repeats({ perSecond: 1, seconds: 30_000, nodes: 1 });
    expect(planLength(5, { ...load, messages: 30_000 }).repeatChance).toBe(drawn);
    expect(drawn).toBeCloseTo(0.388_098_608_271, 11);
  });

  test("a split loses the rest of a run with each start of a process, and fails by what uses most runs", () => {
    const callNumber = planSplit(30, 14, load);
    expect(planSplits(8, load)).toContainEqual(callNumber);
    expect(callNumber.runsPerYear).toBeCloseTo(5e7 / 16_384 + 3_652.425, 6);
    expect(callNumber.lastsYears).toBeCloseTo(2 ** 33 / callNumber.runsPerYear, 6);
    expect(callNumber.runSeconds).toBeCloseTo((16_384 * 10 * 20 * YEAR_S) / 1e9, 3);
    expect(callNumber.failsFirst).toBeNull();
    expect(planSplit(30, 14, { ...load, messages: 1e15 }).failsFirst).toBe("runs, by messages");
    expect(planSplit(10, 34, { ...load, processes: 1_000 }).failsFirst).toBe("runs, by starts");
    for (const { version, run, sequence } of planSplits(7, load)) expect(version + run + sequence).toBe(41);
  });

  test.each([
    [1e9, "it lasts 136 years: the ceiling rises by 2 runs a second, the default of init"],
    [1e14, "it lasts 27.2 years: the ceiling rises by 10 runs a second, which init --rate 10 sets"],
    [1e15, "First fails its run ceiling, which rises by at most 16 runs a second"],
  ])("a plan for %d messages shows how fast the run ceiling of the call number must rise", (messages, text) => {
    expect(callNumberText(planSplit(30, 14, { ...load, messages }))).toContain(text);
  });
});

test("a tiny scheme has as many bits as there are different numbers", () => {
  const scheme = tiny(clock, node, drawn(1, 7));
  const texts = new Set<string>();
  for (let second = 0; second < 8; second++) {
    for (let given = 0; given < 8; given++) {
      for (let drawn = 0; drawn < 7; drawn++) {
        const context = contextWith({ nowMs: second * 1_000, node: { given }, random: { below: () => drawn } });
        texts.add(generatedStep(scheme.generate(context)).text);
      }
    }
  }
  expect(scheme.facts.bits).toBe(Math.log2(texts.size));
  expect(scheme.facts.nodes).toBe(8);
  expect(scheme.facts.perSecond).toBe(texts.size / 8);
  expect(scheme.facts.endsMs).toBe(7_999);
});

test("a tiny scheme has no bits for a value that is never generated", () => {
  const scheme = tiny({ kind: "node", from: "server" }, { ...sequence("kept"), first: 1 });
  const context = contextWith();
  const texts = new Set<string>();
  expect(() => {
    for (;;) texts.add(generatedStep(scheme.generate(context)).text);
  }).toThrow(expect.objectContaining({ code: "number_space_exhausted" }));
  expect(scheme.facts.bits).toBe(Math.log2(8 * texts.size));
  expect(scheme.facts.lastsSeconds(2)).toBe((8 * texts.size) / 2);
});

test("a tiny scheme has the chance of a guess that a sum over all counts of numbers gives", () => {
  const halfSecond = { ...clock, unitMs: 500 };
  const random = tiny(halfSecond, node, drawn(0, 7)).facts;
  const counted = tiny(halfSecond, node, sequence("clock unit")).facts;
  const rest = tiny(clock, { kind: "remainder", drawnBelow: 20 }).facts;
  for (const perSecond of [0.1, 3, 40]) {
    // In each of 2 units and 8 nodes: the guess is one of 8 values, or the first of the sequence.
    const drawnInOne = poisson(perSecond / 16, (came) => 1 - (7 / 8) ** came);
    expect(random.guessed(ofASecond(perSecond))).toBeCloseTo(drawnInOne, 12);
    const madeInOne = poisson(perSecond / 16, (came) => (came > 0 ? 1 : 0));
    expect(counted.guessed(ofASecond(perSecond))).toBeCloseTo(madeInOne, 12);
    // 0 to 3 have three of the 20 draws each, 4 to 7 have two.
    const leastInOne = poisson(perSecond, (came) => 1 - (17 / 20) ** came);
    expect(rest.guessed(ofASecond(perSecond))).toBeCloseTo(leastInOne, 12);
  }
  const counter = tiny({ kind: "counter", asked: "for each number" });
  // The first of a count is certain.
  expect(counter.facts.guessed(ofASecond(2))).toBe(1);
  expect(counter.facts.lastsSeconds(2)).toBe(4);
  expect(counter.facts.order).toBe("strict");
});

test.each<readonly [string, Scheme, number]>([
  ["random values", tiny(clock, node, drawn(0, 7)), 2],
  ["random values of more nodes than there are", tiny(clock, drawn(0, 6)), 3],
  ["values that come more often than others", tiny(clock, { kind: "remainder", drawnBelow: 11 }), 1],
  ["sequences of nodes that draw their numbers", tiny(clock, hashed, sequence("clock unit")), 2],
  ["counters that began anywhere", tiny(clock, hashed, { ...sequence("process"), first: "random" }, 5), 2],
])("a tiny scheme has the chance of a repeat that simulated histories show: %s", (what, scheme, nodes) => {
  const seconds = what.startsWith("counters") ? 1 : 3;
  const random = seededRandom(inject("seed"));
  const below = (bound: number) => Math.floor(random() * bound);
  for (const perSecond of what.startsWith("counters") ? [1.5, 6] : [0.5, 1.5]) {
    let repeated = 0;
    for (let history = 0; history < HISTORIES; history++) {
      const texts: string[] = [];
      for (let index = 0; index < nodes; index++) {
        const given = nodeSourcesOf(scheme.fields).includes("mac hash") ? below(8) : index;
        const context = contextWith({ nowMs: 0, node: { given }, random: { below } });
        for (const atMs of moments(random, perSecond / nodes, seconds)) {
          context.clock.at = atMs;
          const step = scheme.generate(context);
          if (step.outcome === "generated") texts.push(step.text);
        }
      }
      if (new Set(texts).size < texts.length) repeated++;
    }
    const chance = scheme.facts.repeats({ perSecond, seconds, nodes });
    const deviation = Math.sqrt((chance * (1 - chance)) / HISTORIES);
    expect(Math.abs(repeated / HISTORIES - chance), `${repeated} of ${HISTORIES}, not ${chance}`).toBeLessThan(
      6 * deviation,
    );
  }
});

test.each(byName)("%s has no chance of anything when no number is made", (_, { facts }) => {
  expect(facts.repeats({ perSecond: 0, seconds: 9, nodes: 9 })).toBe(0);
  expect(facts.guessed(ofASecond(0))).toBe(0);
  expect(facts.neighbor(ofASecond(0))).toBe(0);
});

function ofASecond(perSecond: number): Load {
  return { perSecond, seconds: 1, nodes: 1 };
}

const HISTORIES = sized(2_500, 10_000);

/** Fields of three bits each, or of as many as a last number says. */
function tiny(...given: readonly (Source | number)[]): Scheme {
  const bits = given.find((value) => typeof value === "number") ?? 3;
  const sources = given.filter((value) => typeof value !== "number");
  const fields = sources.map((source, index): Field => {
    return { name: `field${index}`, width: { bits: source.kind === "sequence" ? bits : 3 }, source };
  });
  return defineScheme({ name: "tiny", title: "Tiny", fields, encodings: [decimal("decimal", 9)] });
}

function drawn(from: number, to: number): Source {
  return { kind: "random", from, to };
}

function sequence(within: SequenceScope): Extract<Source, { kind: "sequence" }> {
  return { kind: "sequence", within, first: 0 };
}

/** The mean of `of` over a Poisson number with this mean. */
function poisson(mean: number, of: (came: number) => number): number {
  let sum = 0;
  let weight = Math.exp(-mean);
  for (let came = 0; came < 200; came++) {
    sum += weight * of(came);
    weight *= mean / (came + 1);
  }
  return sum;
}

/** Moments at random, in their order. */
function moments(random: () => number, perSecond: number, seconds: number): readonly number[] {
  const found: number[] = [];
  for (let at = 0; ; ) {
    at -= Math.log(1 - random()) / perSecond;
    if (at >= seconds) return found;
    found.push(at * 1_000);
  }
}
