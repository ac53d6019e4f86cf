import { describe, expect, test } from "vitest";
import { seededRandom } from "../../../test/faults/seeded-random.js";
import { encodeCallNumber } from "../src/codec.js";
import { correctionsOf } from "../src/corrections.js";

const NUMBER = "2VznWE2i";
const number = (run: number, sequence: number) => encodeCallNumber({ version: 0, run, sequence });

describe("corrections", () => {
  const of99 = ({ ledgerId }: { ledgerId: number }) => ledgerId === 99;

  test.each<[text: string, slip: string, positions: number[], meant?: string]>([
    ['"2VznWE2i".', "surrounding", []],
    ["2Vzn\u00adWE2i", "surrounding", []],
    ["2Vzn WE 2i", "surrounding", []],
    ["2VznWE2l", "look_alike", [7]],
    ["2Vzn-WE21", "look_alike", [8]],
    ["2V50Pv9M", "look_alike", [3], "2V5OPv9M"],
    ["2vznWE2i", "case", [1]],
    ["2VznWE2I", "case", [7]],
    ["2vznwe2i", "case", [1, 4, 5]],
    ["(2VZNWE2I)", "case", [3, 4, 8]],
  ])("corrections of %j include %s at %j", (text, slip, positions, callNumber = NUMBER) => {
    expect(correctionsOf(text, of99, 16)).toContainEqual({ callNumber, slip, positions, ledgerId: 99 });
  });

  test.each([NUMBER, "", "?", "2VznWE2", "2VznWE2ii", "V2znWE2i", "3VznWE2i", `${NUMBER}${" ".repeat(60)}`])(
    "corrections of %j are none",
    (text) => expect(correctionsOf(text, of99, 16)).toEqual([]),
  );

  test("corrections are within the leased range, the fewest changes first, and no more than requested", () => {
    const corrections = correctionsOf("oooollll", () => true, 16);
    const changes = corrections.map(({ positions }) => positions.length);
    expect(changes).toEqual(changes.toSorted((a, b) => a - b));
    expect(new Set(corrections.map(({ callNumber }) => callNumber)).size).toBe(16);
    const above99 = correctionsOf("2vznWE2i", ({ ledgerId }) => ledgerId >= 100, 16);
    expect(above99).not.toContainEqual(expect.objectContaining({ callNumber: NUMBER }));
  });

  test("corrections include every number of which one letter has the wrong case", () => {
    const random = seededRandom(5);
    for (let round = 0; round < 200; round++) {
      const run = Math.floor(random() * 2 ** 30);
      const callNumber = number(run, Math.floor(random() * 2 ** 14));
      const at = Math.floor(random() * 8);
      const text = withOtherCase(callNumber, at);
      if (text === callNumber) continue;
      const found = correctionsOf(text, ({ ledgerId }) => ledgerId === run, 16);
      expect(found, text).toContainEqual(expect.objectContaining({ callNumber, positions: [at] }));
    }
  });

  test("no text leads to more than 600 candidates", () => {
    for (const text of ["iiiiiiii", "2oOlI1i0", "ABCDEFGH"]) {
      let count = 0;
      correctionsOf(text, () => ++count > 0, 5);
      expect(count).toBeLessThan(600);
    }
  });
});

function withOtherCase(text: string, at: number): string {
  const letter = text.charAt(at);
  const otherCase = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
  return text.slice(0, at) + otherCase + text.slice(at + 1);
}
