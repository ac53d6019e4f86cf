/** Chibrary's two schemes before the call number: their vectors, three alphabets, the kept sequence, and the full second. */
import { describe, expect, test } from "vitest";
import { chibrary33284, chibrary33284Since } from "../src/schemes/chibrary-3-32-8-4.js";
import { chibrary41620 } from "../src/schemes/chibrary-4-16-20.js";
import { contextWith, encodingsOf, fieldsOf, MapMemory, minted, mustMatch, readingsOf, vectorsOf } from "./helpers.js";

describe("4 server, 16 pid, 20 sequence", () => {
  interface In {
    readonly server: number;
    readonly pid: number;
    readonly sequence: number;
  }

  const { vectors, invalid } = vectorsOf<{
    readonly vectors: readonly {
      readonly in: In;
      readonly id: string;
      readonly bits: string;
      readonly base64_2007: string;
      readonly base62_2014feb: string;
      readonly base62: string;
    }[];
    readonly invalid: readonly In[];
  }>("chibrary_4_16_20");

  test("of each of the 37 vectors is written in three alphabets, and among the readings of each text", () => {
    expect(vectors).toHaveLength(37);
    for (const { in: values, id, bits, base62, base62_2014feb, base64_2007 } of vectors) {
      const encodings = { base62, base62_2014feb, base64_2007, decimal: id };
      expect(chibrary41620.format({ ...values })).toBe(base62);
      expect(encodingsOf(chibrary41620, { ...values })).toEqual(encodings);
      expect(BigInt(`0b${bits}`)).toBe(BigInt(id));
      expect(mustMatch(chibrary41620.parse(base62))).toMatchObject({ values, encoding: "base62", number: BigInt(id) });
      for (const text of Object.values(encodings)) {
        expect(readingsOf(chibrary41620, text).map((reading) => reading.values)).toContainEqual(values);
      }
    }
  });

  test("is refused for each of the invalid vectors, and for a pid or a server that does not fit", () => {
    expect(invalid).toHaveLength(3);
    for (const values of invalid)
      expect(() => chibrary41620.format({ ...values }), JSON.stringify(values)).toThrow(RangeError);
    expect(() => chibrary41620.mint(contextWith({ node: { pid: 70_000 } }))).toThrow(
      "pid must be a whole number from 0 to 65535, not 70000",
    );
    expect(() => chibrary41620.mint(contextWith({ node: { server: 16 } }))).toThrow("not 16");
  });

  test("goes on behind the sequence that the disk has kept, for each server and pid by itself", () => {
    const disk = new MapMemory();
    const mint = (pid: number, server: number) =>
      fieldsOf(chibrary41620, minted(chibrary41620, contextWith({ disk, node: { pid, server } })));
    expect(mint(7, 1)).toEqual({ server: 1, pid: 7, sequence: 1 });
    expect(mint(7, 1)).toMatchObject({ sequence: 2 });
    expect(mint(8, 1)).toMatchObject({ sequence: 1 });
    expect(mint(7, 2)).toMatchObject({ sequence: 1 });
    expect(mint(7, 1)).toMatchObject({ sequence: 3 });
  });

  test("is refused behind the last sequence, and stays refused", () => {
    const disk = new MapMemory();
    minted(chibrary41620, contextWith({ disk }));
    for (const name of disk.kept.keys()) disk.set(name, 2n ** 20n - 2n);
    expect(fieldsOf(chibrary41620, minted(chibrary41620, contextWith({ disk })))).toMatchObject({
      sequence: 2 ** 20 - 1,
    });
    for (let again = 0; again < 2; again++) {
      expect(() => chibrary41620.mint(contextWith({ disk }))).toThrow(
        expect.objectContaining({ code: "space_used_up" }),
      );
    }
  });
});

describe("3 version, 32 seconds, 8 sequence, 4 parallel", () => {
  const { vectors } = vectorsOf<{
    readonly vectors: readonly {
      readonly in: {
        readonly version: number;
        readonly timestamp: number;
        readonly sequence: number;
        readonly parallel: number;
      };
      readonly id: string;
      readonly bits: string;
      readonly base62: string;
    }[];
  }>("chibrary_3_32_8_4");

  test("of each of the 34 vectors is written and read", () => {
    expect(vectors).toHaveLength(34);
    for (const { in: values, id, bits, base62 } of vectors) {
      expect(chibrary33284.format({ ...values })).toBe(base62);
      expect(encodingsOf(chibrary33284, { ...values })).toEqual({ base62, decimal: id });
      expect(BigInt(`0b${bits}`)).toBe(BigInt(id));
      expect(mustMatch(chibrary33284.parse(base62))).toMatchObject({ values, number: BigInt(id) });
      expect(readingsOf(chibrary33284, id).map((reading) => reading.values)).toContainEqual(values);
    }
  });

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

  test("counts from the service start that it is told, and from 1970 when it is told none", () => {
    const startMs = Date.UTC(2014, 1, 1);
    const since = chibrary33284Since(startMs);
    const text = minted(since, contextWith({ nowMs: startMs + 90_500 }));
    expect(mustMatch(since.parse(text))).toMatchObject({ values: { timestamp: 90 }, timeMs: startMs + 90_000 });
    expect(mustMatch(chibrary33284.parse(text))).toMatchObject({ timeMs: 90_000 });
    expect(() => since.mint(contextWith({ nowMs: startMs - 1 }))).toThrow(RangeError);
    expect(() => chibrary33284Since(Number.NaN)).toThrow(RangeError);
  });
});
