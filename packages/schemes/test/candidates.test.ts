/** Which scheme a text is most likely a number of: what can be checked comes first, then how it is written, then the order of the list. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyCharacter } from "../../../test/any-character.js";
import { candidatesOf, numberIn } from "../src/commands/candidates.js";
import { candidatesInFull } from "../src/commands/parse.js";
import { SCHEMES } from "../src/index.js";
import { contextWith, minted, schemeNamed } from "./helpers.js";

const NOW_MS = Date.UTC(2026, 0, 1);
const DAY_MS = 86_400_000;

const TWITTER_EPOCH_MS = 1_288_834_974_657;

test("candidates with a right time and few bits come first, then former forms, no time, and wrong times", () => {
  const candidates = candidatesOf("454947766275222906", SCHEMES, NOW_MS);
  expect(candidates.map(({ scheme, isPlausible, isToday }) => [scheme.name, isPlausible, isToday])).toEqual([
    ["snowflake-2015", true, true],
    ["twitter-snowflake", true, true],
    ["mysql-13-6-1", true, true],
    ["mysql-11-9", true, false],
    ["tickets", undefined, true],
    ["millis-41-10-13", false, true],
    ["mysql-11-9", false, false],
    ["mysql-11-9", false, false],
  ]);
});

test("the first candidate is the first of the list that writes so today, where nothing can be checked", () => {
  const found = (text: string) => {
    const unchecked = candidatesOf(text, SCHEMES, NOW_MS).filter(({ isPlausible }) => isPlausible === undefined);
    return unchecked.map(({ scheme, reading }) => `${scheme.name} ${reading.encoding}`);
  };
  expect(found("03KOE60u")).toEqual([
    "call-number call number",
    "chibrary-4-16-20 base62",
    "call-number before the table change of 2014-10-20",
    "chibrary-4-16-20 base62_2014feb",
    "chibrary-4-16-20 base64_2007",
  ]);
  expect(found("42")).toEqual(["tickets decimal", "call-number number", "chibrary-4-16-20 decimal"]);
});

test.each([
  ["is still to come", "twitter-snowflake", NOW_MS + DAY_MS + 1, false],
  ["is tomorrow, as clocks differ", "twitter-snowflake", NOW_MS + DAY_MS, true],
  [
    "is on the first day of its scheme, as that of every small number",
    "twitter-snowflake",
    TWITTER_EPOCH_MS + DAY_MS - 1,
    false,
  ],
  ["is on the second day of its scheme", "twitter-snowflake", TWITTER_EPOCH_MS + DAY_MS, true],
  ["is of 1984, in a scheme that counts from 1970", "millis-41-10-13", Date.UTC(1984, 0, 1), false],
])("a candidate needs a plausible time: one that %s", (_, name, nowMs, isPlausible) => {
  const text = minted(schemeNamed(name), contextWith({ nowMs }));
  expect(candidatesOf(text, [schemeNamed(name)], NOW_MS)[0]).toMatchObject({
    isPlausible,
    mismatch: isPlausible ? "" : expect.stringContaining("its time"),
  });
});

test("a plausible candidate has the usual value of a fixed field", () => {
  const scheme = schemeNamed("chibrary-3-32-8-4");
  const mismatchOf = (version: number) => {
    const text = scheme.format({ version, timestamp: NOW_MS / 1_000, sequence: 0, parallel: 0 });
    return candidatesOf(text, [scheme], NOW_MS)[0]?.mismatch;
  };
  expect([mismatchOf(0), mismatchOf(1)]).toEqual(["", "version is 1, and today always 0"]);
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

  test("any text is shown in full with all its candidates, or is a number of no scheme; nothing throws", () => {
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
