/**
 * Tables that fit the terminal: cells are shortened first, in the widest columns; where that is not enough, the least important
 * columns are left out. Without a terminal everything is printed.
 */
import { escapeForTerminal } from "@callnumber/coordinator/text";
import { invocation } from "./invocation.js";
import { type Paint, paintFor, plain, type Style } from "./output.js";

export interface Column<Row> {
  readonly heading: string;
  readonly cellOf: (row: Row) => string | number;
  readonly styleOf?: (row: Row) => Style | undefined;
  /** The least width to which its cells may be shortened. Default: they never are. */
  readonly shrinksTo?: number;
  /** The column with the greatest is left out first, one with 0 never. */
  readonly expendability: number;
}

export interface TableOptions {
  readonly paint?: Paint;
  /** Columns of the terminal; undefined without one. Called for each batch, as windows change. */
  readonly terminalWidth?: () => number | undefined;
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

/** A table that may grow: later rows follow under the same headings, until they need other columns. */
export class Table<Row> {
  readonly #columns: readonly SizedColumn<Row>[];
  readonly #paint: Paint;
  readonly #terminalWidth: () => number | undefined;
  #shownHeadings = "";

  constructor(columns: readonly Column<Row>[], { paint = plain, terminalWidth = () => undefined }: TableOptions = {}) {
    this.#columns = columns.map((column) => ({ column, width: column.heading.length }));
    this.#paint = paint;
    this.#terminalWidth = terminalWidth;
  }

  /** Returns the lines of the rows, after a line of headings when the last one does not fit them. */
  linesOf(rows: readonly Row[]): readonly string[] {
    for (const sized of this.#columns) {
      sized.width = Math.max(sized.width, ...rows.map((row) => widthOf(textOf(sized.column.cellOf(row)))));
    }
    const columns = fitted(this.#columns, this.#terminalWidth() ?? Number.POSITIVE_INFINITY);
    const lines = rows.map((row) =>
      this.#line(columns, row, ({ cellOf, styleOf }) => [textOf(cellOf(row)), styleOf?.(row)]),
    );
    const headings = columns.map(({ column: { heading } }) => heading).join(GAP);
    if (headings === this.#shownHeadings) return lines;
    this.#shownHeadings = headings;
    return [
      this.#paint(
        "bold",
        this.#line(columns, rows[0], ({ heading }) => [heading, undefined]),
      ),
      ...lines,
    ];
  }

  /** Numbers of `row` are aligned to the right. */
  #line(
    columns: readonly SizedColumn<Row>[],
    row: Row | undefined,
    contentOf: (column: Column<Row>) => readonly [text: string, style: Style | undefined],
  ): string {
    const cells = columns.map(({ column, width }) => {
      const [content, style] = contentOf(column);
      const text = shortened(content, width);
      const blank = " ".repeat(width - widthOf(text));
      const isNumber = row !== undefined && typeof column.cellOf(row) === "number";
      return isNumber ? blank + this.#paint(style, text) : this.#paint(style, text) + blank;
    });
    return cells.join(GAP).trimEnd();
  }
}

function textOf(cell: string | number): string {
  return escapeForTerminal(String(cell));
}

/** A table for standard output: as wide as the terminal, and colored only there. */
export function terminalTable<Row>(columns: readonly Column<Row>[]): Table<Row> {
  const { stdout } = invocation().io;
  return new Table(columns, {
    paint: paintFor(false),
    terminalWidth: () => (stdout.isTTY ? stdout.columns : undefined),
  });
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
