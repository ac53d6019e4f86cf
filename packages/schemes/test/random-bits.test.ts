/** Schemes of random bits: the numbers that their own documents publish, and generating of more bits than a double holds. */
import { expect, inject, test } from "vitest";
import { seededRandom } from "../../../test/faults/seeded-random.js";
import { chanceOfRepeat, schemeNamed as namedIn } from "../src/index.js";
import { contextWith, draws, generated, generatedStep, mustMatch, schemeNamed } from "./helpers.js";

test.each([
  ["ulid", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "2016-07-30T23:54:10.259Z", 0xd6764c61efb99302bd5bn],
  ["ulid", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "+010889-08-02T05:31:50.655Z", 2n ** 80n - 1n],
  ["ksuid", "0ujtsYcgvSTl8PAuAdqWYSMnLOv", "2017-10-10T04:00:47.000Z", 0xb5a1cd34b5f99d1154fb6853345c9735n],
  ["ksuid", "aWgEPTl1tmebfsQzFP4bxwgy80V", "2150-06-19T23:21:35.000Z", 2n ** 128n - 1n],
])("a published %s parses to its time and random bits: %s", (name, text, time, random) => {
  const { timeMs, values } = mustMatch(schemeNamed(name).parse(text));
  expect([new Date(timeMs as number).toISOString(), values.random]).toEqual([time, random]);
});

test("a published UUID of version 7 parses to its time and random bits", () => {
  const { timeMs, values } = mustMatch(schemeNamed("uuidv7").parse("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"));
  expect(new Date(timeMs as number).toISOString()).toBe("2022-02-22T19:22:22.000Z");
  expect(values).toMatchObject({ randomA: 0xcc3, randomB: 0x18c4dc0c0c07398fn });
});

test.each([
  ["ulid", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ"],
  ["ulid", "01ARZ3NDEKTSV4RRFFQ69G5FAU"],
  ["ksuid", "aWgEPTl1tmebfsQzFP4bxwgy80W"],
  ["uuidv7", "919108f7-52d1-4320-9bac-f847db4148a8"],
])("%s does not match %s", (name, text) => {
  expect(schemeNamed(name).parse(text)).toMatchObject({ matches: false });
});

test("a field of more bits than a double holds is drawn in words, each of its bits", () => {
  const drawn: number[] = [];
  const below = (bound: number) => {
    drawn.push(bound);
    return bound - 2;
  };
  const { values } = generatedStep(schemeNamed("ulid").generate(contextWith({ random: { below } })));
  expect(drawn).toEqual([2 ** 48, 2 ** 32]);
  expect(values.random).toBe(((2n ** 48n - 2n) << 32n) + 2n ** 32n - 2n);
});

test.each(["ulid", "uuidv7"])(
  "%s generates numbers in order, also in one millisecond and after the clock went back",
  (name) => {
    const scheme = schemeNamed(name);
    const random = seededRandom(inject("seed"));
    const context = contextWith({ random: { below: (bound) => Math.floor(random() * bound) } });
    const texts = [0, 0, 0, 1, 1, -50, -50, 0, 1, 2].map((ms) => {
      context.clock.at = 1_600_000_000_000 + ms;
      return generated(scheme, context);
    });
    expect(texts.toSorted()).toEqual(texts);
    expect(new Set(texts).size).toBe(texts.length);
    const times = texts.map((text) => mustMatch(scheme.parse(text)).timeMs);
    expect(times.map((timeMs = 0) => timeMs - 1_600_000_000_000)).toEqual([0, 0, 0, 1, 1, 1, 1, 1, 1, 2]);
  },
);

test("the random bits of a UUID of version 7 rise by one as one number", () => {
  const uuidv7 = schemeNamed("uuidv7");
  // 12 bits and 62 bits: one more is carried from the second field into the first.
  const context = contextWith({ random: draws([2 ** 30 - 1, 2 ** 32 - 1]) });
  expect(generated(uuidv7, context)).toBe("0174876e-8000-7000-bfff-ffffffffffff");
  expect(generated(uuidv7, context)).toBe("0174876e-8000-7001-8000-000000000000");
});

test("ulid waits for the next millisecond after the greatest random bits", () => {
  const context = contextWith({ random: { below: (bound) => bound - 1 } });
  const ulid = schemeNamed("ulid");
  expect(generated(ulid, context)).toMatch(/Z{16}$/);
  expect(ulid.generate(context)).toEqual({ outcome: "wait", untilMs: context.clock.at + 1 });
  context.clock.at += 1;
  expect(generated(ulid, context)).toMatch(/Z{16}$/);
});

test.each(["ulid", "uuidv7"])(
  "a reader of one number of %s names the next, unless it was the last of its millisecond",
  (name) => {
    const { neighbor } = schemeNamed(name).facts;
    // Of a process that generates 2 numbers a millisecond: 1 - (1 - e^-2) / 2.
    expect(neighbor({ perSecond: 20_000, seconds: 10, nodes: 10 })).toBeCloseTo(1 - (1 - Math.exp(-2)) / 2, 12);
    expect(neighbor({ perSecond: 0, seconds: 10, nodes: 10 })).toBe(0);
  },
);

test("a hash has the length in its name, from 4 to 64 digits", () => {
  const hash = namedIn("hash-9");
  expect(hash?.parse("4b825dc64")).toMatchObject({ matches: true, number: 0x4b825dc64n });
  expect(hash?.parse("4b825dc6")).toMatchObject({ matches: false });
  expect(hash?.facts.repeats({ perSecond: 1, seconds: 300_000, nodes: 1 })).toBe(chanceOfRepeat(16 ** 9, 300_000));
  expect(["hash-4", "hash-64", "hash-3", "hash-65", "hash-", "hash-012"].map((name) => namedIn(name)?.name)).toEqual([
    "hash-4",
    "hash-64",
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test("with another epoch a scheme generates and parses times from there, and a scheme of a fixed epoch has none", () => {
  const epochMs = Date.UTC(2014, 9, 1);
  const chibrary = schemeNamed("chibrary-3-32-8-4").withEpoch(epochMs);
  const context = contextWith({ nowMs: epochMs + 1_000 });
  const text = chibrary === undefined ? "" : generated(chibrary, context);
  expect(text).toBe("00000145");
  expect(chibrary?.parse(text)).toMatchObject({ timeMs: epochMs + 1_000, values: { timestamp: 1 } });
  expect(chibrary?.facts.endsMs).toBe(epochMs + 2 ** 32 * 1_000 - 1);
  expect(["uuidv7", "objectid", "ksuid", "ulid", "tickets"].map((name) => schemeNamed(name).withEpoch(0))).toEqual(
    Array(5).fill(undefined),
  );
});
