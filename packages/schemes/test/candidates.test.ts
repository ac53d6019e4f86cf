/** Which scheme a text is most likely a number of: by how it is written, what can be checked, and how common the scheme is. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyCharacter } from "../../../test/any-character.js";
import { candidatesOf, numberIn, whyNone } from "../src/commands/candidates.js";
import { candidatesInFull } from "../src/commands/parse.js";
import { MOST_COMMON_FIRST } from "../src/commands/ranking.js";
import { SCHEMES, schemesFor } from "../src/index.js";
import { contextWith, generated, schemeNamed } from "./helpers.js";

const NOW_MS = Date.UTC(2026, 0, 1);
const DAY_MS = 86_400_000;

const TWITTER_EPOCH_MS = 1_288_834_974_657;

test("candidates with a plausible time come first, the more common before the rarer; then no time, and wrong times", () => {
  const candidates = candidatesOf("454947766275222906", SCHEMES, NOW_MS);
  expect(candidates.map(({ scheme, check, isToday }) => [scheme.name, check, isToday])).toEqual([
    ["snowflake-2015", "right", true],
    ["twitter-snowflake", "right", true],
    ["mysql-13-6-1", "right", true],
    ["mysql-11-9", "right", false],
    ["rand64", "unchecked", true],
    ["tickets", "wrong", true],
    ["millis-41-10-13", "wrong", true],
    ["mysql-11-9", "wrong", false],
    ["mysql-11-9", "wrong", false],
  ]);
});

test("every scheme has its place in the order of commonness", () => {
  expect(MOST_COMMON_FIRST.toSorted()).toEqual(SCHEMES.map(({ name }) => name).toSorted());
});

/** From the documents of each scheme, and from the reference vectors. */
const PUBLISHED: Readonly<Record<string, string>> = {
  "call-number": "2VznWE2i 03KOE60u dxlGgaI3 8860652339216",
  "chibrary-4-16-20": "00v-Y001 07-GbWIh",
  "mysql-13-6-1": "00000000000001234561 00315360000001234561 18290880000001234561 08521594393120400918",
  "mysql-11-9": "0100000000 0294967295",
  "millis-41-10-13":
    "11295025790976008193 -7151718282733543423 0x9cbffe1d00002001 11307232190003159041 11402993515760721961",
  "snowflake-2015": "454947766275222906 175928847299117063 80351110224678912 41771983423143937",
  "twitter-snowflake": "1585841080431321088",
  uuid:
    "ed9210b3-4554-4f17-a8e0-7f9e538d9908 919108f7-52d1-4320-9bac-f847db4148a8 C232AB00-9414-11EC-B3C8-9F6BDECED846 " +
    "5df41881-3aed-3515-88a7-2f4a814cf09e 2ed6657d-e927-568b-95e1-2665a8aea6a2 7EHvsLzwyaxz7btxGzNOoq",
  uuidv7: "017F22E2-79B0-7CC3-98C4-DC0C0C07398F",
  objectid: "507f1f77bcf86cd799439011 507f191e810c19729de860ea 54759eb3c090d83494e2d804 5b1ba5200000000000000000",
  ulid: "01ARZ3NDEKTSV4RRFFQ69G5FAV 01BX5ZZKBKACTAV9WEVGEMMVRZ 7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
  ksuid: "0ujtsYcgvSTl8PAuAdqWYSMnLOv 0ujsswThIGTUYm2K8FjOOfXtY1K 0uk1Hbc9dQ9pxyTqJ93IUrfhdGq",
  nanoid: "V1StGXR8_Z5jdHi6B-myT",
  tickets: "20 1",
  "random-base62-5": "JjEcn FvGxN",
  rand64: "6457827717110365317 0x599ed017fb08fc85",
  "hash-7": "4b825dc",
  "hash-12": "1da177e4c3f4",
  "hash-32": "d41d8cd98f00b204e9800998ecf8427e",
  "hash-40": "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
  "hash-64": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
};
const published = Object.entries(PUBLISHED).flatMap(([name, texts]) => texts.split(" ").map((text) => [text, name]));

test.each(published)("the published %s is most likely a number of %s", (text = "", name) => {
  expect(candidatesOf(text, schemesFor(text), NOW_MS)[0]?.scheme.name).toBe(name);
});

test("digits alone are no hash, and another epoch moves the time of every scheme that has one to choose", () => {
  expect(candidatesOf("123456789012", schemesFor("123456789012"), NOW_MS)[0]?.scheme.name).toBe("tickets");
  const timesAt = (epochMs?: number) =>
    candidatesOf("5b1ba520", schemesFor("5b1ba520", epochMs), NOW_MS)
      .filter(({ scheme }) => scheme.name === "chibrary-3-32-8-4")
      .map(({ reading }) => reading.timeMs as number);
  const [at1970 = 0] = timesAt();
  expect(timesAt(Date.UTC(2014, 0, 1))).toEqual([at1970 + Date.UTC(2014, 0, 1)]);
});

test.each([
  ["a tweet of 2018", "1050118621198921728", "twitter-snowflake", "snowflake-2015"],
  ["11 digits of seconds and 9 of a UUID", "00478000000123456789", "mysql-11-9", "mysql-13-6-1"],
  ["Chibrary's first scheme", "02g3h5uR", "chibrary-4-16-20", "call-number"],
  ["Chibrary's second scheme, with a plausible time", "1ZVqVGY0", "chibrary-3-32-8-4", "call-number"],
])("%s comes second where a more common scheme is as likely", (_, text, name, first) => {
  expect(
    candidatesOf(text, SCHEMES, NOW_MS)
      .map(({ scheme }) => scheme.name)
      .slice(0, 2),
  ).toEqual([first, name]);
});

test("a count beyond 10^12 and random bits that begin with 32 zeros are unlikely", () => {
  const mismatchOf = (name: string, text: string) => candidatesOf(text, [schemeNamed(name)], NOW_MS)[0]?.mismatch;
  expect(mismatchOf("tickets", "1999999999999")).toBe("");
  expect(mismatchOf("tickets", "2000000000003")).toBe("its count is beyond 10^12");
  expect(mismatchOf("ulid", "01ARZ3NDEK0000000V4RRFFQ69")).toBe("random begins with 32 zero bits");
  expect(mismatchOf("ulid", "01ARZ3NDEK000000SV4RRFFQ69")).toBe("");
});

test.each([
  ["2VznWE2", "no scheme writes 7 characters such as these"],
  ["no number", 'no scheme writes the character " "'],
  ["zzzzzzzz", "for call-number, as call number it is beyond the greatest number, dxlGgaI3"],
  ["123456789012345678901", "no scheme writes 21 digits"],
  [" 2VznWE2i", "it has white space around it. Without that, it is one: 2VznWE2i"],
])("the reason why %j is not a number is one line: %s", (text, reason) => {
  expect(whyNone(text, SCHEMES)).toBe(reason);
});

test("a number in the form of its scheme comes before former forms, and the more common first, where nothing can be checked", () => {
  const found = (text: string) => {
    const unchecked = candidatesOf(text, SCHEMES, NOW_MS).filter(({ check }) => check === "unchecked");
    return unchecked.map(({ scheme, reading }) => `${scheme.name} ${reading.encoding}`);
  };
  expect(found("03KOE60u")).toEqual([
    "call-number call number",
    "chibrary-4-16-20 base62",
    "call-number before 2014-10-20",
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
  const text = generated(schemeNamed(name), contextWith({ nowMs }));
  expect(candidatesOf(text, [schemeNamed(name)], NOW_MS)[0]).toMatchObject({
    check: isPlausible ? "right" : "wrong",
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
