/**
 * What long runs print for people: figures in columns, words behind or above them, nothing wider than the terminal; 80 columns where there is
 * none. What does not fit goes on in the next line and is never cut, for a table may be all that is left of an hour.
 */
import process from "node:process";
import { widthOf } from "../packages/cli/src/table.js";

export interface FiguresRow {
  readonly figures: readonly (string | number)[];
  readonly words: string;
  /** Lines of their own below it. */
  readonly notes?: readonly string[];
}

const COLUMNS_ELSEWHERE = 80;
const GAP = "  ";
const NOTE_INDENT = "      ";

/** How wide this run's tables may be: whoever started it says so (scripts/long-run.mjs). */
function tableColumns(): number {
  return Number(process.env["CALLNUMBER_TABLE_COLUMNS"] ?? COLUMNS_ELSEWHERE);
}

/** Each heading stands in as many lines as it has words. */
export function figuresTable(
  headings: readonly string[],
  rows: readonly FiguresRow[],
  columns: number = tableColumns(),
): string {
  const headingWords = headings.map((heading) => heading.split(" "));
  const widths = headings.map((_, column) =>
    Math.max(
      ...(headingWords[column] ?? []).map((word) => word.length),
      ...rows.map(({ figures }) => widthOf(String(figures[column] ?? ""))),
    ),
  );
  const inColumns = (cells: readonly (string | number)[]) =>
    cells.map((cell, column) => String(cell).padStart(widths[column] ?? 0)).join(GAP);
  const height = Math.max(...headingWords.map((words) => words.length));
  const headingLines = Array.from({ length: height }, (_, line) =>
    inColumns(headingWords.map((words) => words[line - height + words.length] ?? "")),
  );
  const figuresWidth = inColumns(headings.map(() => "")).length;
  // Beside them there must be room for some words in each line.
  const isBeside = figuresWidth <= columns / 2;
  const linesOf = ({ figures, words, notes = [] }: FiguresRow) => {
    const told = inColumns(figures);
    const below = notes
      .flatMap((note) => wrapped(note, columns - NOTE_INDENT.length, ""))
      .map((line) => NOTE_INDENT + line);
    if (!isBeside) return [...wrapped(words, columns, GAP), told, ...below];
    const [first = "", ...more] = wrapped(words, columns - figuresWidth - GAP.length, GAP);
    return [told + GAP + first, ...more.map((line) => " ".repeat(figuresWidth) + GAP + line), ...below];
  };
  return [...headingLines, ...rows.flatMap(linesOf)].map((line) => line.trimEnd()).join("\n");
}

/** Lines of prose, each broken at its blanks. */
export function wrappedLines(text: string, columns: number = tableColumns()): string {
  return text
    .split("\n")
    .flatMap((line) => wrapped(line, columns, GAP))
    .join("\n");
}

/** A word that is wider than a line stands alone in one. */
function wrapped(text: string, columns: number, indent: string): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line === "" || widthOf(longer) <= columns) line = longer;
    else {
      lines.push(line);
      line = indent + word;
    }
  }
  return [...lines, line];
}
