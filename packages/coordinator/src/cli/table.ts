/**
 * Tables that fit the terminal: cells are shortened first, in the widest columns, and where that is not enough the least
 * important columns are left out. Without a terminal nothing is. Knows nothing of what stands in a table.
 */

import { escapeForTerminal } from "../text.js";
import { type Paint, plain, type Style } from "./colours.js";
import { shortened, widthOf } from "./text-width.js";

export interface Column<Row> {
  readonly heading: string;
  readonly cellOf: (row: Row) => string | number;
  readonly styleOf?: (row: Row) => Style | undefined;
  /** Down to so many characters it may be shortened; without it it never is. */
  readonly shrinksTo?: number;
  /** Columns with a greater one are left out first; 0 is never left out. */
  readonly expendability: number;
}

export interface TableOptions {
  readonly paint?: Paint;
  /** Columns of the terminal; undefined for none. Asked for again for each batch: windows change. */
  readonly terminalWidth?: () => number | undefined;
}

interface Place<Row> {
  readonly column: Column<Row>;
  readonly width: number;
}

const GAP = "  ";
/** What would look like the gap between two cells, or like no cell at all. */
const LIKE_A_GAP = /\p{Zs}{2}|^\p{Zs}|\p{Zs}$/u;

/** The cell of a name that somebody chose: quoted where its blanks would make it look like several. */
export function nameCell(name: string): string {
  return LIKE_A_GAP.test(name) ? JSON.stringify(name) : name;
}

/** A table that may grow: later rows stand under the same headings, until they need other columns. */
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

  /** The lines of the rows, under a line of headings when there is none yet that fits them. */
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

/** Others may have chosen it: it does not act on a terminal. */
function textOf(cell: string | number): string {
  return escapeForTerminal(String(cell));
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

/** Shortened by `excess` characters in all, as far as that goes: always the widest of those that may be. */
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
