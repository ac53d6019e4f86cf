/** Twitter's Snowflake and its kin: their vectors, what they refuse, and their clocks. */
import { describe, expect, test } from "vitest";
import { twitterSnowflake } from "../src/schemes/twitter-snowflake.js";
import { mustMatch, spellingsOf } from "./readings.js";
import { type Vector, vectorsOf } from "./vectors.js";
import { minted, world } from "./world.js";

interface In {
  readonly unixMs: string;
  readonly node: number;
  readonly sequence: number;
}

interface SnowflakeVector extends Vector<In> {
  readonly sinceEpoch: string;
  readonly datacenter: number;
  readonly worker: number;
}

describe("Twitter's Snowflake", () => {
  const { vectors } = vectorsOf<{ readonly vectors: readonly SnowflakeVector[] }>(
    "twitter_snowflake_epoch_1288834974657",
  );

  test("of each of the 27 vectors is written and read", () => {
    expect(vectors).toHaveLength(27);
    for (const { in: values, sinceEpoch, datacenter, worker, id, hex, time } of vectors) {
      const fields = { sign: 0, time: Number(sinceEpoch), datacenter, worker, sequence: values.sequence };
      expect(twitterSnowflake.format(fields)).toBe(id);
      expect(spellingsOf(twitterSnowflake, fields)).toEqual({ decimal: id, hex: `0x${hex}` });
      for (const text of [id, `0x${hex}`]) {
        const parsed = mustMatch(twitterSnowflake.parse(text));
        expect(parsed.values).toEqual(fields);
        expect(parsed.number).toBe(BigInt(id));
        expect(parsed.timeMs).toBe(Number(values.unixMs));
        expect(new Date(parsed.timeMs as number).toISOString()).toBe(time);
      }
    }
  });

  test("is minted with the two halves of the node's number", () => {
    for (const { in: values, id } of vectors.filter((vector) => vector.in.sequence === 0)) {
      expect(minted(twitterSnowflake, world({ nowMs: Number(values.unixMs), node: { given: values.node } }))).toBe(id);
    }
  });

  test("is refused for a node beyond ten bits, before the epoch, and beyond the last millisecond", () => {
    const at =
      (nowMs: number, given = 0) =>
      () =>
        twitterSnowflake.mint(world({ nowMs, node: { given } }));
    expect(at(1_600_000_000_000, 1024)).toThrow(
      new RangeError("datacenter and worker must be a whole number from 0 to 1023, not 1024"),
    );
    expect(at(1_288_834_974_656)).toThrow(RangeError);
    expect(at(Number.NaN)).toThrow(RangeError);
    expect(at(1_288_834_974_657 + 2 ** 41 - 1)()).toMatchObject({ outcome: "minted" });
    expect(at(1_288_834_974_657 + 2 ** 41)).toThrow(expect.objectContaining({ code: "space_used_up" }));
  });

  test("with its sign bit set is none", () => {
    expect(twitterSnowflake.parse("9223372036854775807")).toMatchObject({ matches: true });
    expect(twitterSnowflake.parse("9223372036854775808")).toMatchObject({ matches: false });
    expect(() => twitterSnowflake.format({ sign: 1, time: 0, datacenter: 0, worker: 0, sequence: 0 })).toThrow(
      RangeError,
    );
  });
});
