/** What docs/storing-call-numbers.md says of call numbers themselves: how soon two of them differ in case alone. */
import { decodeCallNumber } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import { enginesInDocument } from "./document-examples.js";
import { callNumbersFromTheFirst, SAME_AS_NUMBERS, SAME_BUT_FOR_CASE } from "./numbers-of-tests.js";

describe("call numbers that differ in case alone", () => {
  test("are in every archive: 280 pairs in the first half million, the first of them complete after 114,723", () => {
    const spellings = new Map<string, string>();
    const pairs: string[] = [];
    let count = 0;
    for (const callNumber of callNumbersFromTheFirst()) {
      if (++count > 500_000) break;
      const folded = callNumber.toLowerCase();
      const other = spellings.get(folded);
      if (other === undefined) spellings.set(folded, callNumber);
      else pairs.push(`${count}: ${other} ${callNumber}`);
    }
    expect(pairs[0]).toBe(`114723: ${SAME_BUT_FOR_CASE.join(" ")}`);
    expect(pairs).toHaveLength(280);
  });

  test("are genuine", () => {
    expect(SAME_BUT_FOR_CASE.map(decodeCallNumber)).toEqual([
      { version: 0, run: 6, sequence: 15_220 },
      { version: 0, run: 8, sequence: 34 },
    ]);
    expect(new Set(SAME_BUT_FOR_CASE.map((one) => one.toUpperCase())).size).toBe(1);
  });
});

test("call numbers that are the same as numbers are genuine too", () => {
  expect(SAME_AS_NUMBERS.map((one) => decodeCallNumber(one).run)).toEqual([33, 49]);
  expect(SAME_AS_NUMBERS.map(Number)).toEqual([Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]);
});

test("each example of the document is of a database that runs it", () => {
  expect(new Set(enginesInDocument())).toEqual(new Set(["mariadb", "postgres", "sqlite"]));
});
