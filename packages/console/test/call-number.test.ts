/** What the page makes of a pasted text, without a browser: the number that was meant, and its bits as the codec has them. */
import { CallNumberError, encodeCallNumber, NUMBER_MAX, SHUFFLE, toNumber } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import { callNumberIn, type Decoded, decoded } from "../src/call-number.js";

describe("a pasted text", () => {
  test.each([
    ["2VznWE2i", "2VznWE2i"],
    ["  2VznWE2i\n", "2VznWE2i"],
    ["https://lists.example.org/message/2VznWE2i", "2VznWE2i"],
    ["https://archives.example.org/message/2VznWE2i/raw?from=Whatever#Messages", "2VznWE2i"],
    // None is found: it is shown as it stands, so that what is wrong can be said.
    ["2VznWE2", "2VznWE2"],
    ["see 2VznWE2i, please", "see 2VznWE2i, please"],
    ["", ""],
  ])("%s means %s", (text, callNumber) => {
    expect(callNumberIn(text).callNumber).toBe(callNumber);
  });

  test("that holds several names the others, too", () => {
    const address = "https://archives.example.org/message/2VznWE2i/anhang00";
    expect(callNumberIn(address)).toEqual({ callNumber: "anhang00", others: ["archives", "2VznWE2i"] });
  });
});

describe("a call number, bit by bit", () => {
  const cases = [
    { version: 0, run: 99, sequence: 345 },
    { version: 0, run: 8452, sequence: 11_827 },
    { version: 7, run: 2 ** 30 - 1, sequence: 2 ** 14 - 1 },
    { version: 5, run: 1, sequence: 0 },
  ];

  test.each(cases)("is made of its fields before the shuffle, and of its number after it: %o", (parts) => {
    const callNumber = encodeCallNumber(parts);
    const { bits, digits, number, ...fields } = decoded(callNumber) as Decoded;
    expect(fields).toEqual({ callNumber, ...parts });
    expect(bits.map(({ before }) => before)).toEqual(Array.from(bits.keys()));
    const written = (at: "before" | "after") =>
      bits.reduce((sum, { value, [at]: place }) => sum + value * 2 ** (bits.length - 1 - place), 0);
    expect(written("before")).toBe((parts.version * 2 ** 30 + parts.run) * 2 ** 14 + parts.sequence);
    expect(written("after")).toBe(number);
    expect(number).toBe(toNumber(callNumber));
    for (const { before, after } of bits) expect(SHUFFLE[after]).toBe(before);
    expect(digits.reduce((sum, { value, power }) => sum + value * 62 ** power, 0)).toBe(number);
    expect(number).toBeLessThanOrEqual(NUMBER_MAX);
  });

  test("is refused when it is spelt wrongly, with the place", () => {
    const error = decoded("2VznWE2_");
    expect(error).toBeInstanceOf(CallNumberError);
    expect(error).toMatchObject({ code: "wrong_character", position: 7 });
  });
});
