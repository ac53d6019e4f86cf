/** The schemes made in databases: two of MySQL, as published, as its code made them and corrected; and the ticket servers. */
import { describe, expect, test } from "vitest";
import { tickets } from "../src/schemes/clockless.js";
import { mysql119, mysql1361 } from "../src/schemes/mysql.js";
import { contextWith, fieldsOf, generated, mustMatch, readingsOf, vectorsOf } from "./helpers.js";

describe("13 digits of milliseconds, 6 random, 1 server", () => {
  const EPOCH_MS = Date.UTC(2011, 0, 1);
  const { vectors } = vectorsOf("mysql_bigint_13_6_1");
  const unfitting = vectors.filter(({ fitsUnsignedBigint }) => !fitsUnsignedBigint);

  test("a number beyond BIGINT UNSIGNED is rejected when it is formatted, parsed or generated", () => {
    expect(unfitting).toHaveLength(1);
    for (const { in: given, id = "" } of unfitting) {
      const values = { time: Number(given["timeMs"]), random: given["random"] ?? 0, server: given["server"] ?? 0 };
      expect(() => mysql1361.format(values)).toThrow(`${id} is beyond the greatest number, 18446744073709551615`);
      expect(mysql1361.parse(id)).toMatchObject({ matches: false });
      const context = contextWith({ nowMs: EPOCH_MS + values.time });
      expect(() => mysql1361.generate(context)).toThrow(expect.objectContaining({ code: "number_space_exhausted" }));
    }
    const greatest = { time: 1_844_674_407_370, random: 955_161, server: 5 };
    expect(mysql1361.format(greatest)).toBe("18446744073709551615");
    expect(() => mysql1361.format({ ...greatest, server: 6 })).toThrow(RangeError);
    expect(mysql1361.parse("18446744073709551615")).toMatchObject({ matches: true });
    expect(mysql1361.parse("18446744073709551616")).toMatchObject({
      matches: false,
      reason: expect.stringContaining("beyond the greatest number"),
    });
  });
});

test("11 digits of seconds and 9 of a UUID parse to all numbers that a text without padding can mean", () => {
  const text = "3153600099999999";
  expect(fieldsOf(mysql119, text)).toEqual({ seconds: 3_153_600, uuid: 99_999_999 });
  const lost = readingsOf(mysql119, text).filter(({ encoding }) => encoding === "as written, zeros lost");
  expect(lost.map(({ values }) => values)).toEqual([
    { seconds: 31_536_000, uuid: 99_999_999 },
    { seconds: 315_360_009, uuid: 9_999_999 },
    { seconds: 3_153_600_099, uuid: 999_999 },
    { seconds: 31_536_000_999, uuid: 99_999 },
  ]);
});

test("ticket servers generate 1, 3, 5 as the odd one and 2, 4, 6 as the even one, each with its own counter", () => {
  const [odd, even] = [contextWith({ node: { server: 1 } }), contextWith({ node: { server: 0 } })];
  expect(Array.from({ length: 3 }, () => generated(tickets, odd))).toEqual(["1", "3", "5"]);
  expect(Array.from({ length: 3 }, () => generated(tickets, even))).toEqual(["2", "4", "6"]);
});

test("a parsed ticket shows its server, also the greatest with 64 bits", () => {
  expect(mustMatch(tickets.parse("7"))).toMatchObject({ number: 7n, notes: { server: "odd" } });
  const greatest = (2n ** 64n - 1n).toString();
  expect(mustMatch(tickets.parse(greatest))).toMatchObject({ values: { count: 2n ** 63n - 1n, odd: 1 } });
  expect(tickets.parse((2n ** 64n).toString())).toMatchObject({ matches: false });
});

test("a ticket server fails after the last ticket, and for a counter below 1", () => {
  const at = (server: number, answer: bigint) => () =>
    tickets.generate(contextWith({ node: { server }, counter: { next: () => answer } }));
  expect(at(0, 2n ** 63n - 1n)()).toMatchObject({ text: String(2n ** 64n - 2n) });
  expect(at(0, 2n ** 63n)).toThrow(expect.objectContaining({ code: "number_space_exhausted" }));
  expect(at(1, 0n)).toThrow(RangeError);
});
