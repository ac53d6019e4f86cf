/** The call number as one scheme among others: the vectors of its last step, and the form before the shuffle table changed. */
import { CALL_NUMBER_BITS, SHUFFLE } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import { callNumber } from "../src/schemes/call-number.js";
import { contextWith, encodingsOf, fieldsOf, memoryFailingAt, minted, readingsOf, vectorsOf } from "./helpers.js";

const BEFORE = "before the table change of 2014-10-20";

const { vectors, table, notCallNumbers, matchesPatternButNotReachable } = vectorsOf<{
  readonly table: readonly number[];
  readonly vectors: readonly {
    readonly in: { readonly version: number; readonly run: number; readonly sequence: number };
    readonly bits: string;
    readonly shuffled: string;
    readonly number: string;
    readonly callNumber: string;
    readonly beforeTable20141020: string;
  }[];
  readonly notCallNumbers: readonly string[];
  readonly matchesPatternButNotReachable: readonly string[];
}>("chibrary_3_30_14_final");

describe("the call number", () => {
  test("of each of the 34 vectors is written and read, as a number too", () => {
    expect(vectors).toHaveLength(34);
    for (const { in: values, number, shuffled, callNumber: text } of vectors) {
      expect(callNumber.format(values)).toBe(text);
      expect(callNumber.parse(text)).toMatchObject({
        matches: true,
        values,
        number: BigInt(number),
        encoding: "call number",
      });
      expect(encodingsOf(callNumber, values)).toMatchObject({ "call number": text, number });
      expect(BigInt(`0b${shuffled}`)).toBe(BigInt(number));
      expect(readingsOf(callNumber, number)).toContainEqual(expect.objectContaining({ values, encoding: "number" }));
    }
  });

  test("of before the table change is written, and read beside the number of today", () => {
    for (const { in: values, callNumber: text, beforeTable20141020 } of vectors) {
      expect(encodingsOf(callNumber, values)[BEFORE]).toBe(beforeTable20141020);
      if (beforeTable20141020 === text) continue;
      expect(readingsOf(callNumber, beforeTable20141020)).toContainEqual(
        expect.objectContaining({ values, encoding: BEFORE }),
      );
    }
    expect(vectors.filter((vector) => vector.callNumber !== vector.beforeTable20141020).length).toBeGreaterThan(5);
  });

  test("is shuffled by the table of the vectors, of which they print every third entry", () => {
    expect(table).toEqual(SHUFFLE.filter((_, bit) => bit % 3 === 0));
    expect(SHUFFLE).toHaveLength(CALL_NUMBER_BITS);
  });

  test.each([...notCallNumbers, ...matchesPatternButNotReachable])("is not %j", (text) => {
    expect(callNumber.parse(text)).toMatchObject({ matches: false });
  });

  test("asks for a run once for all its sequences, and then for the next", () => {
    let asked = 0n;
    const context = contextWith({ counter: { next: () => ++asked } });
    const texts = Array.from({ length: 16_384 }, () => minted(callNumber, context));
    expect(new Set(texts).size).toBe(16_384);
    expect(asked).toBe(1n);
    expect(fieldsOf(callNumber, texts.at(-1) as string)).toEqual({ version: 0, run: 1, sequence: 16_383 });
    expect(fieldsOf(callNumber, minted(callNumber, context))).toEqual({ version: 0, run: 2, sequence: 0 });
  });

  test("is never repeated when the memory fails around the end of a run", () => {
    for (let failing = 2; failing <= 12; failing++) {
      const context = contextWith({ memory: memoryFailingAt(failing) });
      const texts: string[] = [];
      for (let step = 0; step < 8; step++) {
        if (step === 3) context.memory.kept.set("call-number/sequence", 16_382n);
        try {
          texts.push(minted(callNumber, context));
        } catch {
          // Not written, not out.
        }
      }
      expect(texts.length).toBeGreaterThan(5);
      expect(new Set(texts).size).toBe(texts.length);
    }
  });

  test("goes on in the next version behind the last run, and refuses behind the last version", () => {
    const answers = [2n ** 30n - 1n, 2n ** 30n, 2n ** 33n - 1n, 2n ** 33n];
    const runs = answers.map((run) => () => callNumber.mint(contextWith({ counter: { next: () => run } })));
    expect(runs[0]?.()).toMatchObject({ values: { version: 0, run: 2 ** 30 - 1 } });
    expect(runs[1]?.()).toMatchObject({ values: { version: 1, run: 0 } });
    expect(runs[2]?.()).toMatchObject({ values: { version: 7, run: 2 ** 30 - 1 } });
    expect(runs[3]).toThrow(expect.objectContaining({ code: "space_used_up" }));
  });
});
