/** Tables fit the terminal, leave out the least important columns first, and are complete where there is no terminal. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatLabels, paintFor } from "../src/output.js";
import { type Column, nameCell, shortened, tableLines, widthOf } from "../src/table.js";

interface Row {
  readonly run: number;
  readonly name: string;
  readonly note: string;
}

const COLUMNS: readonly Column<Row>[] = [
  { heading: "RUN", cellOf: ({ run }) => run, expendability: 0 },
  { heading: "NAME", cellOf: ({ name }) => name, shrinksTo: 5, expendability: 1 },
  { heading: "NOTE", cellOf: ({ note }) => note, styleOf: () => "red", shrinksTo: 5, expendability: 2 },
];

const rows: readonly Row[] = [
  { run: 7, name: "importer", note: "all is well with this one" },
  { run: 4711, name: "インポーター", note: "" },
];

const linesAt = (widthMax?: number) => tableLines(COLUMNS, rows, { widthMax });

describe("a table", () => {
  test("a table without a terminal is complete", () => {
    expect(linesAt()).toEqual([
      " RUN  NAME          NOTE",
      "   7  importer      all is well with this one",
      "4711  インポーター",
    ]);
  });

  test("a table on a terminal shortens the widest columns, and then leaves out the least important", () => {
    expect(linesAt(30)).toEqual([" RUN  NAME         NOTE", "   7  importer     all is wel…", "4711  インポータ…"]);
    expect(linesAt(17)).toEqual([" RUN  NAME", "   7  importer", "4711  インポータ…"]);
    expect(linesAt(12)).toEqual([" RUN  NAME", "   7  impor…", "4711  イン…"]);
    expect(linesAt(3)).toEqual([" RUN", "   7", "4711"]);
  });

  test("a table is never wider than the terminal, as long as one column fits", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "ー", "語", "é", "e\u0301", "👩‍👧", " ", "ü"), maxLength: 40 });
    const row = fc.record({ run: fc.nat(9999), name: text, note: text });
    fc.assert(
      fc.property(fc.array(row, { minLength: 1, maxLength: 5 }), fc.integer({ min: 4, max: 90 }), (drawn, width) => {
        for (const line of tableLines(COLUMNS, drawn, { widthMax: width }))
          expect(widthOf(line)).toBeLessThanOrEqual(width);
      }),
    );
  });

  test("a table in colors keeps its columns", () => {
    const paint = (style: unknown, text: string) => (style === undefined ? text : `<${String(style)}>${text}</>`);
    const lines = tableLines(COLUMNS, rows, { paint });
    expect(lines[0]).toBe("<bold> RUN  NAME          NOTE</>");
    expect(lines[1]).toBe("   7  importer      <red>all is well with this one</>");
  });
});

describe("the width of a text", () => {
  test.each([
    ["importer", 8],
    ["インポーター", 12],
    ["日本語", 6],
    ["한글", 4],
    ["Büro", 4],
    ["Bu\u0308ro", 4],
    ["👩‍👧", 2],
  ])("%s takes %i columns", (text, width) => expect(widthOf(text)).toBe(width));

  test("a text is shortened between letters, never within one", () => {
    expect([shortened("インポーター", 6), shortened("e\u0301e\u0301e\u0301", 2)]).toEqual(["イン…", "e\u0301…"]);
  });
});

describe("colors", () => {
  const ESC = String.fromCharCode(27);
  const isColored = (env: Readonly<Record<string, string>>, isTerminal: boolean) =>
    paintFor({ env, stdout: { isTTY: isTerminal } })("red", "x").includes(ESC);

  test.each([
    ["on a terminal", true, {}, true],
    ["not without one", false, {}, false],
    ["not with NO_COLOR", false, { NO_COLOR: "1" }, true],
    ["not with NO_COLOR, even when they are asked for", false, { NO_COLOR: "1", FORCE_COLOR: "1" }, true],
    ["with an empty NO_COLOR as without", true, { NO_COLOR: "" }, true],
    ["with FORCE_COLOR where there is no terminal", true, { FORCE_COLOR: "1" }, false],
    ["not with FORCE_COLOR=0", false, { FORCE_COLOR: "0" }, true],
    ["not on a dumb terminal", false, { TERM: "dumb" }, true],
  ])("%s", (_, expected, env: Readonly<Record<string, string>>, isTerminal) => {
    expect(isColored(env, isTerminal)).toBe(expected);
  });
});

test("names and labels with blanks are quoted where they would look like several cells", () => {
  expect(["mail 1", "mail-1  closed", " mail", "mail\u3000"].map(nameCell)).toEqual([
    "mail 1",
    '"mail-1  closed"',
    '" mail"',
    '"mail\u3000"',
  ]);
  expect(formatLabels({ labels: { a: "x b=y", c: "d", e: "=" } })).toBe('a="x b=y" c=d e==');
});
