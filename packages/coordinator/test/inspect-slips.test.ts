/** What a mistyped, misread or badly copied call number may have been: found where it is one slip away, and in bounded work. */
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { seededRandom } from "../../../test/faults/seeded-random.js";
import { slipsOf } from "../src/inspect/corrections.js";

/** Run 99. */
const NUMBER = "2VznWE2i";
const RANGE = { firstLedgerId: 99, lastLedgerId: 99 };

test.each<[string, string, number[]]>([
  [" 2VznWE2i", "surrounding", []],
  ['"2VznWE2i".', "surrounding", []],
  ["<2VznWE2i>,", "surrounding", []],
  ["2VznWE2i\u00a0", "surrounding", []],
  ["2Vzn\u00adWE2i", "surrounding", []],
  ["\u200b2VznWE2i", "surrounding", []],
  ["2VznWE2i%20", "surrounding", []],
  ["%222VznWE2i%22", "surrounding", []],
  ["%E2%80%8B2VznWE2i", "surrounding", []],
  ["%32VznWE2%69", "surrounding", []],
  ["2Vzn-WE2i", "surrounding", []],
  ["2Vzn WE 2i", "surrounding", []],
  ["https://lists.example.org/message/2VznWE2i?from=mail", "surrounding", []],
  ["| 2VznWE2i |", "surrounding", []],
  ["|2VznWE2i|", "surrounding", []],
  ["message 2VznWE2i was lost yesterday", "surrounding", []],
  ["message 2Vzn\u00adWE2i was lost yesterday", "surrounding", []],
  ["100% 2VznWE2i", "surrounding", []],
  ["ZVznWE2i", "look_alike", [0]],
  ["2VznWEzi", "look_alike", [6]],
  ["2VznWE2l", "look_alike", [7]],
  ["2VznWE2|", "look_alike", [7]],
  ["2Vzn-WE21", "look_alike", [8]],
  ["2UznWE2i", "look_alike", [1]],
  ["ZV2nWEz1", "look_alike", [0, 2, 6, 7]],
  ["2VznWЕ2i", "look_alike", [5]],
  ["２VznWE2i", "look_alike", [0]],
  ["2VznVVE2i", "look_alike", [4, 5]],
  ["2vznWE2i", "case", [1]],
  ["2VznWE2I", "case", [7]],
  ["2VznwE2i", "case", [4]],
  ["2vznwe2i", "case", [1, 4, 5]],
  ["2VZNWE2I", "case", [2, 3, 7]],
  ["(2vznwe2i)", "case", [2, 5, 6]],
])("%j is taken for it: %s at %j", (text, slip, positions) => {
  expect(slipsOf(text, RANGE, 16)).toContainEqual({ callNumber: NUMBER, slip, positions, ledgerId: 99 });
});

test.each(["", "?", "2VznWE2", "2VznWE2ii", "V2znWE2i", "3VznWE2i", "2Vzn", "%%%%%%%%"])("%j is not", (text) => {
  expect(slipsOf(text, RANGE, 16)).toEqual([]);
});

test("a text is never its own hint", () => {
  expect(slipsOf(NUMBER, RANGE, 16)).toEqual([]);
});

test("only numbers of the range are told, the fewest changes first, and no more than asked for", () => {
  const all = { firstLedgerId: 0, lastLedgerId: 2 ** 33 - 1 };
  const slips = slipsOf("ooooiiii", all, 16);
  expect(slips).toHaveLength(16);
  const changes = slips.map(({ positions }) => positions.length);
  expect(changes).toEqual(changes.toSorted((a, b) => a - b));
  expect(new Set(slips.map(({ callNumber }) => callNumber)).size).toBe(16);
  expect(slipsOf("ZVznWE2i", { firstLedgerId: 100, lastLedgerId: 2 ** 33 - 1 }, 16)).not.toContainEqual(
    expect.objectContaining({ callNumber: NUMBER }),
  );
});

test("every number is found again behind one slip of case at any place", () => {
  const random = seededRandom(5);
  for (let round = 0; round < 200; round++) {
    const run = Math.floor(random() * 2 ** 30);
    const callNumber = encodeCallNumber({ version: 0, run, sequence: Math.floor(random() * 2 ** 14) });
    const at = Math.floor(random() * 8);
    const letter = callNumber[at] as string;
    const other = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
    if (other === letter) continue;
    const text = callNumber.slice(0, at) + other + callNumber.slice(at + 1);
    const found = slipsOf(text, { firstLedgerId: run, lastLedgerId: run }, 16);
    expect(found, `${text} for ${callNumber}`).toContainEqual(expect.objectContaining({ callNumber, positions: [at] }));
  }
});

test("a text that is made to cost much costs no more than its bound", () => {
  const all = { firstLedgerId: 2 ** 33 - 1, lastLedgerId: 2 ** 33 - 1 };
  for (const text of [
    "1lI|1lI|",
    "oooooooo".repeat(40),
    "1lI|1lI| ".repeat(60),
    "%E2%80%8B".repeat(80),
    "rn".repeat(200),
  ]) {
    expect(slipsOf(text, all, 16)).toEqual([]);
  }
});
