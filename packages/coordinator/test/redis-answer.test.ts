/** What is taken for an answer of our scripts, and what for none: found by fuzzing, seed 3. */
import { describe, expect, test } from "vitest";
import { recordIn, wholeIn, wordsIn } from "../src/stores/redis-answer.js";
import { answersIn } from "../src/stores/redis-calls.js";
import { asStoreError, isStray } from "../src/stores/redis-errors.js";
import { leasesIn } from "../src/stores/redis-ledger.js";
import { commandsFor, NAMESPACE, RECEIPT_KEY, storeIdFrom } from "./commands-for-test.js";

const storeId = storeIdFrom(1);
const lease = commandsFor(storeId).lease({ nonce: "nonce-of-the-step", runCount: 2 });
const touch = commandsFor(storeId).touch({ nonce: "nonce-of-the-step" });
const HEAD = [storeId, "0", "1700000000000", "e:r:0:0", "0", "1"];

describe("an answer to a lease", () => {
  const answered = (...words: readonly unknown[]) => answersIn(words, [{ namespace: NAMESPACE, command: lease }]);

  test("is read when it is whole", () => {
    expect(answered(...HEAD, `${lease.nonce} 7 2`)).toMatchObject([{ after: { highWaterMark: 7 }, runCount: 2 }]);
    expect(answered(...HEAD.with(2, ""), `${lease.nonce} EXHAUSTED 0`)).toMatchObject([{ word: "EXHAUSTED" }]);
  });

  test.each(["", "-", "NaN", "1e1", "0x7", "+7", "007", "7.0", "7\n", "1073741824", "99999999999999999999"])(
    "is none with the mark %j",
    (mark) => {
      expect(answered(...HEAD, `${lease.nonce} ${mark} 2`)).toBeUndefined();
    },
  );

  test.each([
    ["no time", HEAD.with(2, "")],
    ["no whole time", HEAD.with(2, "1.5")],
    ["a version that can't be", HEAD.with(1, "8")],
    ["no node count", HEAD.with(5, "x")],
    ["a list for a word", HEAD.with(0, ["x"] as never)],
    ["null for a word", HEAD.with(3, null as never)],
    ["a word less", HEAD.slice(1)],
  ])("is none with %s", (_, head) => {
    expect(answered(...head, `${lease.nonce} 7 2`)).toBeUndefined();
  });

  test("is none with another nonce, or more behind it", () => {
    expect(answered(...HEAD, "nonce-of-another 7 2")).toBeUndefined();
    expect(answered(...HEAD, `${lease.nonce} 7 2 7`)).toBeUndefined();
    expect(answered(...HEAD, `${lease.nonce} 7`)).toBeUndefined();
  });
});

test("an answer to another step is none when a number of it is none", () => {
  const words = [touch.nonce, storeId, "0", "7", "1700000000000", "e", "0", "1", "0"];
  const read = (given: readonly unknown[]) => answersIn(given, [{ namespace: NAMESPACE, command: touch }]);
  expect(read(words)).toMatchObject([{ after: { highWaterMark: 7, nodeCount: 1 }, runCount: 0 }]);
  for (const at of [0, 2, 3, 4, 6, 7, 8]) expect(read(words.with(at, "x"))).toBeUndefined();
  for (const other of [null, 0, "OK", [], {}, [words]])
    expect(answersIn(other, [{ namespace: NAMESPACE, command: touch }])).toBeUndefined();
});

test("a record is read only whole", () => {
  const words = [storeId, "0", "7", "1700000000000", "3", "0", "1", RECEIPT_KEY, "-"];
  expect(recordIn(words)).toMatchObject({ storeId, firstRun: 1, highWaterMark: 7, generation: 3, seal: "-" });
  for (let at = 0; at < words.length - 1; at++) expect(recordIn(words.with(at, "x"))).toBeUndefined();
  for (const other of [null, 0, "OK", [], words.slice(0, 8)]) expect(recordIn(other)).toBeUndefined();
});

test("leases that are none are refused as what they are", () => {
  for (const other of [null, "OK", [], [[]], ["", ""], [null, null], [["1 1 1 1 n"], [7]]]) {
    expect(() => leasesIn(other)).toThrow(expect.objectContaining({ code: "store_corrupt" }));
  }
  expect(leasesIn([[], []])).toEqual([]);
});

test("words and numbers are nothing else", () => {
  expect([wordsIn(["a"]), wordsIn("a"), wordsIn([1]), wordsIn(null)]).toEqual([["a"], undefined, undefined, undefined]);
  expect([wholeIn("0"), wholeIn("7", 6), wholeIn(undefined), wholeIn("9007199254740993")]).toEqual([
    0,
    undefined,
    undefined,
    undefined,
  ]);
});

test("a refusal of another step is not believed", () => {
  const refusal = Object.assign(new Error("AHEAD nonce-of-one 7"), { name: "ReplyError" });
  const told = (nonce: string) => asStoreError(refusal, { namespace: "main", nonce }, { server: "redis:6379" });
  expect(told("nonce-of-one")).toMatchObject({ code: "line_reached" });
  expect(told("nonce-of-other")).toMatchObject({
    code: "store_unavailable",
    message: "Redis at redis:6379 answered another question than the one asked",
  });
  expect([
    isStray(refusal, { namespace: "main", nonce: "x" }),
    isStray(refusal, { namespace: "main", nonce: "nonce-of-one" }),
  ]).toEqual([true, false]);
});
