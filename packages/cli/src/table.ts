/**
 * Tables that fit the terminal: cells are shortened first, in the widest columns; where that is not enough, the least important
 * columns are left out. Without a terminal everything is printed.
 */
import { escapeForTerminal } from "@callnumber/coordinator/text";
import { commandIo } from "./command-io.js";
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

interface Place<Row> {
  readonly column: Column<Row>;
  readonly width: number;
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
  readonly #columns: readonly Column<Row>[];
  readonly #paint: Paint;
  readonly #terminalWidth: () => number | undefined;
  readonly #widths: Map<Column<Row>, number>;
  #shownHeadings = "";

  constructor(columns: readonly Column<Row>[], { paint = plain, terminalWidth = () => undefined }: TableOptions = {}) {
    this.#columns = columns;
    this.#paint = paint;
    this.#terminalWidth = terminalWidth;
    this.#widths = new Map(columns.map((column) => [column, column.heading.length]));
  }

  /** Returns the lines of the rows, after a line of headings when the last one does not fit them. */
  linesOf(rows: readonly Row[]): readonly string[] {
    for (const column of this.#columns) {
      const widest = Math.max(this.#widths.get(column) ?? 0, ...rows.map((row) => widthOf(textOf(column.cellOf(row)))));
      this.#widths.set(column, widest);
    }
    const natural = this.#columns.map((column) => ({ column, width: this.#widths.get(column) ?? 0 }));
    const places = fitted(natural, this.#terminalWidth());
    const headings = places.map(({ column: { heading } }) => heading).join(GAP);
    const lines = rows.map((row) => this.#line(places, row));
    if (headings === this.#shownHeadings) return lines;
    this.#shownHeadings = headings;
    return [this.#headings(places, rows[0]), ...lines];
  }

  #headings(places: readonly Place<Row>[], row: Row | undefined): string {
    const cells = places.map(({ column, width }) => {
      const isNumber = row !== undefined && typeof column.cellOf(row) === "number";
      return isNumber ? column.heading.padStart(width) : column.heading.padEnd(width);
    });
    return this.#paint("bold", cells.join(GAP).trimEnd());
  }

  #line(places: readonly Place<Row>[], row: Row): string {
    const cells = places.map(({ column, width }, index) => {
      const cell = column.cellOf(row);
      const text = shortened(textOf(cell), width);
      const blank = " ".repeat(width - widthOf(text));
      const painted = this.#paint(column.styleOf?.(row), text);
      if (typeof cell === "number") return blank + painted;
      return index === places.length - 1 ? painted : painted + blank;
    });
    return cells.join(GAP).trimEnd();
  }
}

function textOf(cell: string | number): string {
  return escapeForTerminal(String(cell));
}

/** A table for standard output: as wide as the terminal, and colored only there. */
export function terminalTable<Row>(columns: readonly Column<Row>[]): Table<Row> {
  const { stdout } = commandIo();
  return new Table(columns, {
    paint: paintFor(false),
    terminalWidth: () => (stdout.isTTY ? stdout.columns : undefined),
  });
}

function fitted<Row>(natural: readonly Place<Row>[], widthMax: number | undefined): readonly Place<Row>[] {
  if (widthMax === undefined) return natural;
  let places = natural;
  for (;;) {
    const narrow = narrowed(places, lineWidth(places) - widthMax);
    if (lineWidth(narrow) <= widthMax) return narrow;
    const [least] = byExpendability(places);
    if (least === undefined || least.column.expendability === 0) return narrow;
    places = places.filter((place) => place !== least);
  }
}

/** Shortens columns by `excess` characters in all, as far as they allow it, the widest first. */
function narrowed<Row>(places: readonly Place<Row>[], excess: number): readonly Place<Row>[] {
  let narrow = places;
  for (let left = excess; left > 0; left--) {
    const [widest] = narrow
      .filter(({ column, width }) => width > (column.shrinksTo ?? width))
      .sort((one, other) => other.width - one.width);
    if (widest === undefined) break;
    narrow = narrow.map((place) => (place === widest ? { ...place, width: place.width - 1 } : place));
  }
  return narrow;
}

function byExpendability<Row>(places: readonly Place<Row>[]): readonly Place<Row>[] {
  return [...places].sort((one, other) => other.column.expendability - one.column.expendability);
}

function lineWidth<Row>(places: readonly Place<Row>[]): number {
  return places.reduce((sum, { width }) => sum + width, GAP.length * (places.length - 1));
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
  let width = 0;
  for (const { segment } of lettersOf(text)) width += letterWidth(segment);
  return width;
}

/** Returns the text, or as much of its beginning as fits before an ellipsis. `width` is at least 1. */
export function shortened(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = "";
  let left = width - 1;
  for (const { segment } of lettersOf(text)) {
    left -= letterWidth(segment);
    if (left < 0) break;
    kept += segment;
  }
  return `${kept}…`;
}

function letterWidth(letter: string): number {
  return WIDE.test(letter) ? 2 : 1;
}

function lettersOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return segmenter.segment(text);
}
