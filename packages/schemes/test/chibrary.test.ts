/** The call number and Chibrary's two schemes before it: their runs, the kept sequence, the full second, and texts that are none. */
import { CALL_NUMBER_BITS, SHUFFLE } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import { callNumber } from "../src/schemes/call-number.js";
import { chibrary33284, chibrary41620 } from "../src/schemes/chibrary.js";
import { contextWith, fieldsOf, memoryFailingAt, minted, vectorsOf } from "./helpers.js";

const { table, notCallNumbers, matchesPatternButNotReachable } = vectorsOf<{
  readonly table: readonly number[];
  readonly notCallNumbers: readonly string[];
  readonly matchesPatternButNotReachable: readonly string[];
}>("chibrary_3_30_14_final");

describe("the call number", () => {
  test("is shuffled by the table of the vectors, which have every third entry", () => {
    expect(table).toEqual(SHUFFLE.filter((_, bit) => bit % 3 === 0));
    expect(SHUFFLE).toHaveLength(CALL_NUMBER_BITS);
  });

  test.each([...notCallNumbers, ...matchesPatternButNotReachable])("is not %j", (text) => {
    expect(callNumber.parse(text)).toMatchObject({ matches: false });
  });

  test("requests a run once for all its sequences, and then the next one", () => {
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
        if (step === 3) Map.prototype.set.call(context.memory, "call-number/sequence", 16_382n);
        try {
          texts.push(minted(callNumber, context));
        } catch {
          // The write failed: no number was returned.
        }
      }
      expect(texts.length).toBeGreaterThan(5);
      expect(new Set(texts).size).toBe(texts.length);
    }
  });

  test("continues in the next version after the last run, and fails after the last version", () => {
    const answers = [2n ** 30n - 1n, 2n ** 30n, 2n ** 33n - 1n, 2n ** 33n];
    const runs = answers.map((run) => () => callNumber.mint(contextWith({ counter: { next: () => run } })));
    expect(runs[0]?.()).toMatchObject({ values: { version: 0, run: 2 ** 30 - 1 } });
    expect(runs[1]?.()).toMatchObject({ values: { version: 1, run: 0 } });
    expect(runs[2]?.()).toMatchObject({ values: { version: 7, run: 2 ** 30 - 1 } });
    expect(runs[3]).toThrow(expect.objectContaining({ code: "number_space_exhausted" }));
  });
});

describe("4 server, 16 pid, 20 sequence", () => {
  test("rejects a pid or a server that does not fit", () => {
    expect(() => chibrary41620.mint(contextWith({ node: { pid: 70_000 } }))).toThrow(
      "pid must be a whole number from 0 to 65535, not 70000",
    );
    expect(() => chibrary41620.mint(contextWith({ node: { server: 16 } }))).toThrow("not 16");
  });

  test("continues after the sequence that the disk has kept for each server and pid", () => {
    const disk = new Map<string, bigint>();
    const mint = (pid: number, server: number) =>
      fieldsOf(chibrary41620, minted(chibrary41620, contextWith({ disk, node: { pid, server } })));
    expect(mint(7, 1)).toEqual({ server: 1, pid: 7, sequence: 1 });
    expect(mint(7, 1)).toMatchObject({ sequence: 2 });
    expect(mint(8, 1)).toMatchObject({ sequence: 1 });
    expect(mint(7, 2)).toMatchObject({ sequence: 1 });
    expect(mint(7, 1)).toMatchObject({ sequence: 3 });
  });

  test("fails after the last sequence, each time", () => {
    const disk = new Map<string, bigint>();
    minted(chibrary41620, contextWith({ disk }));
    for (const name of disk.keys()) disk.set(name, 2n ** 20n - 2n);
    expect(fieldsOf(chibrary41620, minted(chibrary41620, contextWith({ disk })))).toMatchObject({
      sequence: 2 ** 20 - 1,
    });
    for (let again = 0; again < 2; again++) {
      expect(() => chibrary41620.mint(contextWith({ disk }))).toThrow(
        expect.objectContaining({ code: "number_space_exhausted" }),
      );
    }
  });
});

describe("3 version, 32 seconds, 8 sequence, 4 parallel", () => {
  test("waits for the next second when the 256 of this one are used", () => {
    const context = contextWith({ nowMs: 5_400 });
    const texts = Array.from({ length: 256 }, () => minted(chibrary33284, context));
    expect(chibrary33284.mint(context)).toEqual({ outcome: "wait", untilMs: 6_000 });
    context.clock.at = 5_999;
    expect(chibrary33284.mint(context)).toEqual({ outcome: "wait", untilMs: 6_000 });
    context.clock.at = 6_000;
    texts.push(minted(chibrary33284, context));
    expect(new Set(texts).size).toBe(257);
    expect(fieldsOf(chibrary33284, texts.at(-1) as string)).toEqual({
      version: 0,
      timestamp: 6,
      sequence: 0,
      parallel: 1,
    });
  });
});
