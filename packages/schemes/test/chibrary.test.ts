/** The call number and Chibrary's first scheme: their runs, the kept sequence, and texts that are none. */
import { CALL_NUMBER_BITS, SHUFFLE } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { candidatesOf } from "../src/commands/candidates.js";
import { schemesFor } from "../src/index.js";
import { callNumber } from "../src/schemes/call-number.js";
import { chibrary41620 } from "../src/schemes/chibrary.js";
import { contextWith, fieldsOf, generated, mustMatch, vectorsOf } from "./helpers.js";

const { table, notCallNumbers, matchesPatternButNotReachable } = vectorsOf<{
  readonly table: readonly number[];
  readonly notCallNumbers: readonly string[];
  readonly matchesPatternButNotReachable: readonly string[];
}>("chibrary_3_30_14_final");

test("the call number is shuffled by the table of the vectors, which have every third entry", () => {
  expect(table).toEqual(SHUFFLE.filter((_, bit) => bit % 3 === 0));
  expect(SHUFFLE).toHaveLength(CALL_NUMBER_BITS);
});

test.each([...notCallNumbers, ...matchesPatternButNotReachable])("the call number scheme does not match %j", (text) => {
  expect(callNumber.parse(text)).toMatchObject({ matches: false });
});

test.each(["00000000000000000000000000110001100000101011001", "0b00000000000000000000000000110001100000101011001"])(
  "the call number scheme parses its fields from the 47 bits %s",
  (text) => {
    const parsed = mustMatch(callNumber.parse(text));
    expect(parsed.values).toEqual({ version: 0, run: 99, sequence: 345 });
    expect(callNumber.format(parsed.values)).toBe("2VznWE2i");
    const [likeliest] = candidatesOf(text, schemesFor(text), Date.now());
    expect(likeliest?.scheme.name).toBe("call-number");
  },
);

test("the bits of a call number are those of its version, run and sequence", () => {
  const { bits } = callNumber.encodings({ version: 7, run: 2 ** 30 - 2, sequence: 1 });
  expect(bits).toBe(`111${"1".repeat(29)}0${"0".repeat(13)}1`);
  for (const text of [
    `${bits}0`,
    bits?.slice(1),
    `0b${bits}0`,
    `0b${bits?.slice(1)}`,
    `0B${bits}`,
    `${bits}`.replace("1", "2"),
  ]) {
    expect(callNumber.parse(text as string), text).toMatchObject({ matches: false });
  }
});

test("the call number scheme requests a run once for all its sequences, and then the next one", () => {
  let asked = 0n;
  const context = contextWith({ counter: { next: () => ++asked } });
  const texts = Array.from({ length: 16_384 }, () => generated(callNumber, context));
  expect(new Set(texts).size).toBe(16_384);
  expect(asked).toBe(1n);
  expect(fieldsOf(callNumber, texts.at(-1) as string)).toEqual({ version: 0, run: 1, sequence: 16_383 });
  expect(fieldsOf(callNumber, generated(callNumber, context))).toEqual({ version: 0, run: 2, sequence: 0 });
});

test("the call number scheme continues in the next version after the last run, and fails after the last version", () => {
  const answers = [2n ** 30n - 1n, 2n ** 30n, 2n ** 33n - 1n, 2n ** 33n];
  const runs = answers.map((run) => () => callNumber.generate(contextWith({ counter: { next: () => run } })));
  expect(runs[0]?.()).toMatchObject({ values: { version: 0, run: 2 ** 30 - 1 } });
  expect(runs[1]?.()).toMatchObject({ values: { version: 1, run: 0 } });
  expect(runs[2]?.()).toMatchObject({ values: { version: 7, run: 2 ** 30 - 1 } });
  expect(runs[3]).toThrow(expect.objectContaining({ code: "number_space_exhausted" }));
});

test("the 4+16+20 scheme continues after the sequence that the disk has kept for each server and pid", () => {
  const disk = new Map<string, bigint>();
  const generate = (pid: number, server: number) =>
    fieldsOf(chibrary41620, generated(chibrary41620, contextWith({ disk, node: { pid, server } })));
  expect(generate(7, 1)).toEqual({ server: 1, pid: 7, sequence: 1 });
  expect(generate(7, 1)).toMatchObject({ sequence: 2 });
  expect(generate(8, 1)).toMatchObject({ sequence: 1 });
  expect(generate(7, 2)).toMatchObject({ sequence: 1 });
  expect(generate(7, 1)).toMatchObject({ sequence: 3 });
});

test("the 4+16+20 scheme fails after the last sequence, each time", () => {
  const disk = new Map<string, bigint>();
  generated(chibrary41620, contextWith({ disk }));
  for (const name of disk.keys()) disk.set(name, 2n ** 20n - 2n);
  expect(fieldsOf(chibrary41620, generated(chibrary41620, contextWith({ disk })))).toMatchObject({
    sequence: 2 ** 20 - 1,
  });
  for (let again = 0; again < 2; again++) {
    expect(() => chibrary41620.generate(contextWith({ disk }))).toThrow(
      expect.objectContaining({ code: "number_space_exhausted" }),
    );
  }
});
