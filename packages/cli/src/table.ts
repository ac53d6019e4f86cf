/**
 * Tables that fit the terminal: cells are shortened first, in the widest columns; where that is not enough, the least important
 * columns are left out. Without a terminal everything is printed.
 */
import { escapeForTerminal } from "@callnumber/coordinator/internal/text";
import { invocation } from "./invocation.js";
import { formatCount, type Paint, paintFor, plain, type Style } from "./output.js";

export interface Column<Row> {
  readonly heading: string;
  readonly cellOf: (row: Row) => string | number;
  /** Its numbers count something: they have separators. Default: they are names, as of a process. */
  readonly isCount?: boolean;
  readonly styleOf?: (row: Row) => Style | undefined;
  /** The least width to which its cells may be shortened. Default: they never are. */
  readonly shrinksTo?: number;
  /** The column with the greatest is left out first, one with 0 never. */
  readonly expendability: number;
}

export interface TableOptions {
  readonly paint?: Paint;
  /** Columns of the terminal; default: none, where every cell is complete. */
  readonly widthMax?: number | undefined;
}

interface SizedColumn<Row> {
  readonly column: Column<Row>;
  width: number;
}

const GAP = "  ";
/** Looks like the gap between two cells, or like no cell. */
const LIKE_A_GAP = /\p{Zs}{2}|^\p{Zs}|\p{Zs}$/u;

/** Quotes a name whose blanks would make it look like several cells. */
export function nameCell(name: string): string {
  return LIKE_A_GAP.test(name) ? JSON.stringify(name) : name;
}

/** Returns a line of headings, and one for each row. */
export function tableLines<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { paint = plain, widthMax = Number.POSITIVE_INFINITY }: TableOptions = {},
): readonly string[] {
  const sized = columns.map((column) => {
    const widths = rows.map((row) => widthOf(textOf(column, row)));
    return { column, width: Math.max(column.heading.length, ...widths) };
  });
  const shown = fitted(sized, widthMax);
  // Numbers are aligned to the right, and their headings with them.
  type Content = readonly [text: string, style: Style | undefined];
  const lineOf = (row: Row | undefined, contentOf: (column: Column<Row>) => Content) => {
    const cells = shown.map(({ column, width }) => {
      const [content, style] = contentOf(column);
      const text = shortened(content, width);
      const blank = " ".repeat(width - widthOf(text));
      const isNumber = row !== undefined && typeof column.cellOf(row) === "number";
      return isNumber ? blank + paint(style, text) : paint(style, text) + blank;
    });
    return cells.join(GAP).trimEnd();
  };
  return [
    paint(
      "bold",
      lineOf(rows[0], ({ heading }) => [heading, undefined]),
    ),
    ...rows.map((row) => lineOf(row, (column) => [textOf(column, row), column.styleOf?.(row)])),
  ];
}

function textOf<Row>({ cellOf, isCount = false }: Column<Row>, row: Row): string {
  const cell = cellOf(row);
  return escapeForTerminal(isCount && typeof cell === "number" ? formatCount(cell) : String(cell));
}

/** Formats a table for standard output: as wide as the terminal, and colored only there. */
export function terminalTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const { stdout } = invocation().io;
  const widthMax = stdout.isTTY ? stdout.columns : undefined;
  return tableLines(columns, rows, { paint: paintFor(), widthMax }).join("\n");
}

/** Shortens the widest columns as far as they allow it, and leaves out the most expendable one while that is not enough. */
function fitted<Row>(columns: readonly SizedColumn<Row>[], widthMax: number): readonly SizedColumn<Row>[] {
  const narrow = columns.map((sized) => ({ ...sized }));
  const width = () => narrow.reduce((sum, sized) => sum + sized.width, GAP.length * (narrow.length - 1));
  while (width() > widthMax) {
    const [widest] = narrow
      .filter((sized) => sized.width > (sized.column.shrinksTo ?? sized.width))
      .sort((one, other) => other.width - one.width);
    if (widest === undefined) break;
    widest.width--;
  }
  const [least] = columns.toSorted((one, other) => other.column.expendability - one.column.expendability);
  if (width() <= widthMax || least === undefined || least.column.expendability === 0) return narrow;
  return fitted(
    columns.filter((sized) => sized !== least),
    widthMax,
  );
}

/** Created for the first text that is not ASCII: it is slow to load, and most commands print none. */
let segmenter: Intl.Segmenter | undefined;
/** Two columns each, in every terminal: East Asian Wide and Fullwidth of Unicode, and emoji. */
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}\p{Emoji_Presentation}]/u;
const ASCII = /^[ -~]*$/;

/** Returns how many columns of a terminal a text takes. Holders name themselves in any script. */
export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length;
  return lettersOf(text).reduce((width, letter) => width + letterWidth(letter), 0);
}

/** Returns the text, or as much of its beginning as fits before an ellipsis. `width` is at least 1. */
export function shortened(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = "";
  let left = width - 1;
  for (const letter of lettersOf(text)) {
    left -= letterWidth(letter);
    if (left < 0) break;
    kept += letter;
  }
  return `${kept}…`;
}

function letterWidth(letter: string): number {
  return WIDE.test(letter) ? 2 : 1;
}

function lettersOf(text: string): readonly string[] {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}
