/** What the page makes of a pasted text, without a browser: the number that was meant, and its bits as the codec has them. */
import { UnclearTextError } from "@callnumber/protocol/api";
import { CallNumberError, encodeCallNumber, toNumber } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { type Bit, callNumberIn, type Decoded, decoded } from "../src/call-number.js";

test.each([
  ["2VznWE2i", "2VznWE2i"],
  ["  2VznWE2i\n", "2VznWE2i"],
  ["https://lists.example.org/message/2VznWE2i", "2VznWE2i"],
  ["see 2VznWE2i, please", "2VznWE2i"],
  ["https://urldefense.com/v3/__https://lists.example.org/message/2VznWE2i__;!!Ab-c!xyz$", "2VznWE2i"],
  ["https://archives.example.org/message/2VznWE2i/raw?from=Whatever#Messages", "2VznWE2i"],
  // None is found: it is shown as it is, so that the page can say what is wrong.
  ["2VznWE2", "2VznWE2"],
  ["see nonsense!", "see nonsense!"],
  // The page must not choose.
  ["2VznWE2i or 03KOE60u", "2VznWE2i or 03KOE60u"],
  ["9NKUO8", "9NKUO8"],
  ["", ""],
])("the pasted text %j means %j", (text, callNumber) => {
  expect(callNumberIn(text)).toBe(callNumber);
});

const valueOf = (bits: readonly Bit[]) => Number.parseInt(bits.map(({ value }) => value).join(""), 2);

test.each([
  { version: 0, run: 99, sequence: 345 },
  { version: 0, run: 8452, sequence: 11_827 },
  { version: 7, run: 2 ** 30 - 1, sequence: 2 ** 14 - 1 },
  { version: 5, run: 1, sequence: 0 },
])("the bits of a call number are its fields before the shuffle, and its number after it: %o", (parts) => {
  const callNumber = encodeCallNumber(parts);
  const { bitsBefore, bitsAfter, number, ...fields } = decoded(callNumber) as Decoded;
  expect(fields).toEqual(parts);
  expect(valueOf(bitsBefore)).toBe((parts.version * 2 ** 30 + parts.run) * 2 ** 14 + parts.sequence);
  expect(number).toBe(toNumber(callNumber));
  expect(valueOf(bitsAfter)).toBe(number);
  expect(bitsAfter.filter(({ field }) => field === "sequence")).toHaveLength(14);
});

test.each([
  ["2VznWE2i or 03KOE60u", ["2VznWE2i", "03KOE60u"]],
  ["9NKUO8", ["009NKUO8"]],
])("the text %j is taken for none of %j, which are offered", (text, candidates) => {
  const error = decoded(text);
  expect(error).toBeInstanceOf(UnclearTextError);
  expect(error).toMatchObject({ candidates });
});

test("a call number with a wrong character is rejected with its position", () => {
  const error = decoded("2VznWE2_");
  expect(error).toBeInstanceOf(CallNumberError);
  expect(error).toMatchObject({ code: "wrong_character", position: 7 });
});
