/** Base62 of any width, against the vectors of the original's library. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { BASE62, fromDigits, inDigits } from "../src/positional.js";
import { VECTOR_PARTS, vectorsOf } from "./vectors.js";

const { vectors } = vectorsOf<{
  readonly vectors: readonly { readonly int: string; readonly base62: string; readonly pad8: string }[];
}>("base62");

test("each of the 27 numbers is written in base62, with and without leading zeros, and read", () => {
  expect(vectors).toHaveLength(27);
  for (const { int, base62, pad8 } of vectors) {
    expect(inDigits(BigInt(int), BASE62)).toBe(base62);
    expect(inDigits(BigInt(int), BASE62, 8)).toBe(pad8);
    expect(fromDigits(base62, BASE62)).toBe(BigInt(int));
    expect(fromDigits(pad8, BASE62)).toBe(BigInt(int));
  }
});

test("every number comes back, and a text with another sign is none", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 200n }), (number) => {
      expect(fromDigits(inDigits(number, BASE62), BASE62)).toBe(number);
    }),
  );
  for (const text of ["", "-", "0-", "é", "0\n", "１"]) expect(fromDigits(text, BASE62)).toBeUndefined();
});

test("the vectors have the parts that the tests of this package read, and no other", () => {
  expect(VECTOR_PARTS.toSorted()).toEqual([
    "base62",
    "chibrary_3_30_14_final",
    "chibrary_3_32_8_4",
    "chibrary_4_16_20",
    "mysql_bigint_13_6_1",
    "mysql_sql_11_9",
    "nonsequential_41_10_13",
    "objectid_4_3_2_3",
    "random_base62_5",
    "snowflake_1_41_10_12_epoch2015",
    "twitter_snowflake_epoch_1288834974657",
    "uuid",
  ]);
});
