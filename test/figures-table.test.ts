/** The tables of long runs: whole, and no wider than what they are read in. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { figuresTable, wrappedLines } from "./figures-table.js";

test("words stand behind their figures and go on below themselves", () => {
  const rows = [
    { figures: [12, "1.50"], words: "a lease without its last brace", notes: ["2 runs were burnt"] },
    { figures: [3, "0.99"], words: "null" },
  ];
  expect(figuresTable(["times", "others' latency"], rows, 40)).toBe(
    [
      "       others'",
      "times  latency",
      "   12     1.50  a lease without its last",
      "                  brace",
      "      2 runs were burnt",
      "    3     0.99  null",
    ].join("\n"),
  );
});

test("words stand above figures that leave them too little room", () => {
  const rows = [{ figures: [1_000_000, 22, 333], words: "a master that is killed and comes back later" }];
  expect(figuresTable(["call numbers", "repeats", "again after"], rows, 30)).toBe(
    [
      "   call           again",
      "numbers  repeats  after",
      "a master that is killed and",
      "  comes back later",
      "1000000       22    333",
    ].join("\n"),
  );
});

test("no line is wider than the terminal as long as no word is, and no word is lost", () => {
  const word = fc.stringMatching(/^[a-z]{1,12}$/);
  const words = fc.array(word, { minLength: 1, maxLength: 40 });
  const row = fc.record({ figures: fc.tuple(fc.nat(999_999), fc.nat(99)), told: words, notes: fc.array(words) });
  fc.assert(
    fc.property(fc.array(row, { minLength: 1 }), fc.integer({ min: 30, max: 120 }), (rows, columns) => {
      const table = figuresTable(
        ["times", "runs"],
        rows.map(({ figures, told, notes }) => {
          return { figures, words: told.join(" "), notes: notes.map((note) => note.join(" ")) };
        }),
        columns,
      );
      for (const line of table.split("\n")) expect(line.length).toBeLessThanOrEqual(columns);
      const seen = (text: string) => text.match(/[a-z]+/g);
      const meant = rows.flatMap(({ told, notes }) => [...told, ...notes.flat()]).join(" ");
      expect(seen(table)?.slice(2).toSorted()).toEqual(seen(meant)?.toSorted());
      expect(seen(wrappedLines(meant, columns))).toEqual(seen(meant));
    }),
  );
});
