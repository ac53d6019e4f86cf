/** Which scheme a text is most likely a number of: what can be checked comes first, then how it is written, then the order of the list. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyCharacter } from "../../../test/any-character.js";
import { candidatesOf, numberIn } from "../src/commands/candidates.js";
import { candidatesInFull } from "../src/commands/parse.js";
import { type Field, type Reading, SCHEMES, type Scheme } from "../src/index.js";

const NOW_MS = Date.UTC(2026, 0, 1);
const DAY_MS = 86_400_000;

interface MadeUp {
  readonly name: string;
  readonly fields?: readonly Field[];
  readonly today?: string;
  readonly readings: readonly Partial<Reading>[];
}

/** A scheme of which every text is a number, with these readings. */
function madeUp({ name, fields = [], today = "x", readings }: MadeUp): Scheme {
  const [first, ...otherReadings] = readings.map((reading) => ({
    values: {},
    number: 1n,
    encoding: "decimal",
    notes: {},
    ...reading,
  }));
  if (first === undefined) throw new Error("a number has at least one reading");
  return {
    name,
    title: name,
    fields,
    mint: () => ({ outcome: "wait", untilMs: 0 }),
    parse: () => ({ matches: true, ...first, otherReadings }),
    format: () => today,
    encodings: () => ({}),
    facts: {} as Scheme["facts"],
  };
}

const clock = (epochMs: number): Field => ({
  name: "time",
  width: { bits: 41 },
  source: { kind: "clock", unitMs: 1, epochMs },
});
const version = (others: "read" | "refused"): Field => ({
  name: "version",
  width: { bits: 3 },
  source: { kind: "fixed", value: 0, others },
});
const timed = (name: string, timeMs: number, epochMs = Date.UTC(2010, 10, 4)) =>
  madeUp({ name, fields: [clock(epochMs)], readings: [{ timeMs }] });
const order = (...schemes: readonly Scheme[]) => candidatesOf("x", schemes, NOW_MS).map(({ scheme }) => scheme.name);

describe("the likeliest scheme", () => {
  test("has a plausible time; then come schemes without a time, then those with an implausible one", () => {
    const future = timed("future", NOW_MS + 2 * DAY_MS);
    const none = madeUp({ name: "none", readings: [{}] });
    const plausible = timed("plausible", Date.UTC(2018, 5, 9));
    expect(order(future, none, plausible)).toEqual(["plausible", "none", "future"]);
  });

  test.each([
    ["is still to come", NOW_MS + DAY_MS + 1, Date.UTC(2010, 0, 1), false],
    ["is tomorrow, as clocks differ", NOW_MS + DAY_MS, Date.UTC(2010, 0, 1), true],
    [
      "is on the first day of its scheme, as that of every small number",
      Date.UTC(2010, 0, 1, 23),
      Date.UTC(2010, 0, 1),
      false,
    ],
    ["is on the second day of its scheme", Date.UTC(2010, 0, 2), Date.UTC(2010, 0, 1), true],
    ["is of 1984, in a scheme that counts from 1970", Date.UTC(1984, 0, 1), 0, false],
  ])("needs a plausible time: one that %s", (_, timeMs, epochMs, isPlausible) => {
    expect(candidatesOf("x", [timed("a", timeMs, epochMs)], NOW_MS)[0]).toMatchObject({
      isPlausible,
      mismatch: isPlausible ? "" : expect.stringContaining("its time"),
    });
  });

  test("has the usual value of a fixed field, unless other values are rejected anyway", () => {
    const made = (name: string, value: number, others: "read" | "refused") =>
      madeUp({ name, fields: [version(others)], readings: [{ values: { version: value } }] });
    expect(order(made("another", 1, "read"), made("refusing", 0, "refused"), made("same", 0, "read"))).toEqual([
      "same",
      "refusing",
      "another",
    ]);
  });

  test("is among equals the one that writes its numbers so today, then the first of the list", () => {
    const former = madeUp({ name: "former", today: "y", readings: [{}] });
    const first = madeUp({ name: "first", readings: [{}] });
    const second = madeUp({ name: "second", readings: [{}] });
    expect(order(former, first, second)).toEqual(["first", "second", "former"]);
  });

  test("is found by each reading of the text", () => {
    const scheme = madeUp({
      name: "two",
      fields: [clock(Date.UTC(2010, 0, 1))],
      readings: [{ timeMs: NOW_MS + 9 * DAY_MS }, { timeMs: NOW_MS - 9 * DAY_MS, encoding: "former" }],
    });
    expect(candidatesOf("x", [scheme], NOW_MS).map(({ reading }) => reading.encoding)).toEqual(["former", "decimal"]);
  });
});

describe("any text", () => {
  const digits = fc.constantFrom(
    "0123456789",
    "0123456789abcdef",
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
  );
  const likely = digits.chain((alphabet) => fc.string({ unit: fc.constantFrom(...alphabet), maxLength: 40 }));
  const prefixed = fc
    .tuple(fc.constantFrom("", "-", "0x", "0b", " ", "/", "https://x.example/"), likely)
    .map((parts) => parts.join(""));

  test("is shown in full with all its candidates, or is a number of no scheme; nothing throws", () => {
    fc.assert(
      fc.property(fc.oneof(prefixed, fc.string({ unit: anyCharacter, maxLength: 60 })), (typed) => {
        const text = numberIn(typed, SCHEMES);
        const candidates = candidatesOf(text, SCHEMES, NOW_MS);
        const matching = SCHEMES.filter((scheme) => scheme.parse(text).matches).length;
        expect(new Set(candidates.map(({ scheme }) => scheme)).size).toBe(matching);
        const [first, ...others] = candidates;
        if (first !== undefined)
          expect(candidatesInFull(text, [first, ...others], 80)).not.toMatch(/undefined|NaN|Invalid/);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("pasted text", () => {
  test.each([
    ["2VznWE2i", "2VznWE2i"],
    ["https://lists.example.org/message/2VznWE2i?x=1#top", "2VznWE2i"],
    ["https://lists.example.org/message/%32VznWE2i/", "2VznWE2i"],
    ["/message/2VznWE2i/raw", "2VznWE2i"],
    ["/message/2VznWE2i/reply", "2VznWE2i"],
    ["https://twitter.com/jack/status/20", "20"],
    ["https://example.org/messages/454947766275222906", "454947766275222906"],
    ["https://example.org/archives/5b1ba5200000000000000000/", "5b1ba5200000000000000000"],
    ["/2024/05/dxlGgaHB", "dxlGgaHB"],
    ["https://example.org/abcde", "abcde"],
    ["https://example.org/%zz/none", "none"],
    ["https://5b1ba5200000000000000000/", "https://5b1ba5200000000000000000/"],
    ["not a number", "not a number"],
    ["/", "/"],
    ["", ""],
  ])("numberIn(%j) is %j", (text, number) => {
    expect(numberIn(text, SCHEMES)).toBe(number);
  });

  test("numberIn() searches the last parts of a long path", () => {
    expect(numberIn(`${"x y/".repeat(100)}2VznWE2i`, SCHEMES)).toBe("2VznWE2i");
    expect(numberIn(`/2VznWE2i${"/x y".repeat(64)}`, SCHEMES)).toBe("x y");
  });
});
