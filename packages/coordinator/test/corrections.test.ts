/** What a mistyped or badly copied call number may have been meant for: found within few changes, and in bounded work. */
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { seededRandom } from "../../../test/faults/seeded-random.js";
import { correctionsOf } from "../src/inspect/corrections.js";

/** Run 99. */
const NUMBER = "2VznWE2i";
const RANGE = { firstLedgerId: 99, lastLedgerId: 99 };

test.each<[string, string, number[]]>([
  ['"2VznWE2i".', "surrounding", []],
  ["2Vzn\u00adWE2i", "surrounding", []],
  ["2Vzn WE 2i", "surrounding", []],
  ["2VznWE2l", "look_alike", [7]],
  ["2Vzn-WE21", "look_alike", [8]],
  ["2vznWE2i", "case", [1]],
  ["2VznWE2I", "case", [7]],
  ["2vznwe2i", "case", [1, 4, 5]],
  ["(2VZNWE2I)", "case", [3, 4, 8]],
])("%j is corrected: %s at %j", (text, slip, positions) => {
  expect(correctionsOf(text, RANGE, 16)).toContainEqual({ callNumber: NUMBER, slip, positions, ledgerId: 99 });
});

test("a similar character is corrected", () => {
  const text = "2V50Pv9M";
  expect(correctionsOf(text, RANGE, 16)).toContainEqual(
    expect.objectContaining({ callNumber: "2V5OPv9M", slip: "look_alike", positions: [3] }),
  );
});

test.each([NUMBER, "", "?", "2VznWE2", "2VznWE2ii", "V2znWE2i", "3VznWE2i", `${NUMBER}${" ".repeat(60)}`])(
  "%j has no correction",
  (text) => expect(correctionsOf(text, RANGE, 16)).toEqual([]),
);

test("corrections are of the range, the fewest changes first, and no more than asked for", () => {
  const all = { firstLedgerId: 0, lastLedgerId: 2 ** 33 - 1 };
  const corrections = correctionsOf("oooollll", all, 16);
  expect(corrections).toHaveLength(16);
  const changes = corrections.map(({ positions }) => positions.length);
  expect(changes).toEqual(changes.toSorted((a, b) => a - b));
  expect(new Set(corrections.map(({ callNumber }) => callNumber)).size).toBe(16);
  expect(correctionsOf("2vznWE2i", { ...all, firstLedgerId: 100 }, 16)).not.toContainEqual(
    expect.objectContaining({ callNumber: NUMBER }),
  );
});

test("every number is found again when the case of one letter is wrong", () => {
  const random = seededRandom(5);
  for (let round = 0; round < 200; round++) {
    const run = Math.floor(random() * 2 ** 30);
    const callNumber = encodeCallNumber({ version: 0, run, sequence: Math.floor(random() * 2 ** 14) });
    const at = Math.floor(random() * 8);
    const letter = callNumber.charAt(at);
    const other = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
    if (other === letter) continue;
    const text = callNumber.slice(0, at) + other + callNumber.slice(at + 1);
    const found = correctionsOf(text, { firstLedgerId: run, lastLedgerId: run }, 16);
    expect(found, `${text} for ${callNumber}`).toContainEqual(expect.objectContaining({ callNumber, positions: [at] }));
  }
});
