/**
 * An archive's call numbers as a column of a CSV file (RFC 4180): commas between fields, rows that end with LF or CRLF, quotes
 * around fields that hold commas, line feeds or quotes, a quote within them doubled. Reads bytes as they come, keeps those of the
 * one column, and of them no more than could be a call number: a row may hold a whole message.
 */
import { ArchiveError } from "./archive-error.js";
import type { ArchiveScan } from "./archive-scan.js";
import { namesShown, shown } from "./shown.js";

/** The name of a column in the first row; or its place, from 1, in a file that has no row of names. */
export type CsvColumn = string | number;

/** A longer field holds no call number, and no name of a column. */
const FIELD_BYTES_MAX = 4_096;
/** Of a row of names: all of them are kept until it ends. SQLite itself has at most 32,767. */
const NAME_COUNT_MAX = 32_767;

const QUOTE = 0x22;
const COMMA = 0x2c;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/**
 * Where in a field the next byte stands: before its first · in one without quotes · between quotes · behind a quote that ends the
 * field, or is the first of two.
 */
const PLACES = { before: 0, bare: 1, quoted: 2, behindQuote: 3 } as const;

/**
 * Reads the column of all rows into the scan. The chunks may be cut anywhere.
 * @throws ArchiveError when there is no such column, or more than one of that name; when a quoted field never ends, because then
 *   nobody knows how many rows it has swallowed.
 */
export async function scanCsvColumn(
  chunks: AsyncIterable<Buffer>,
  column: CsvColumn,
  scan: ArchiveScan,
): Promise<void> {
  const rows = new CsvRows(column, scan);
  for await (const chunk of chunks) rows.read(chunk);
  rows.end();
}

class CsvRows {
  readonly #scan: ArchiveScan;
  readonly #column: CsvColumn;
  /** Index of the column; undefined until the row of names was read. */
  #wanted: number | undefined;
  /** While that row is read, of all its fields. */
  readonly #names: string[] = [];

  #place: number = PLACES.before;
  #fieldIndex = 0;
  readonly #field = Buffer.alloc(FIELD_BYTES_MAX);
  #fieldBytes = 0;
  /** Whether the field's quotes are not where RFC 4180 wants them. */
  #isMisquoted = false;
  #isRowEmpty = true;
  #lineNumber = 1;
  #rowLine = 1;
  #quoteLine = 1;

  constructor(column: CsvColumn, scan: ArchiveScan) {
    this.#column = column;
    this.#scan = scan;
    this.#wanted = typeof column === "number" ? column - 1 : undefined;
  }

  read(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at] as number;
      if (byte === LINE_FEED) this.#lineNumber++;
      if (this.#place === PLACES.quoted) {
        if (byte === QUOTE) this.#place = PLACES.behindQuote;
        else this.#keep(byte);
      } else if (byte === COMMA) this.#endField();
      else if (byte === LINE_FEED) this.#endRow();
      else this.#readOutsideQuotes(byte);
    }
  }

  end(): void {
    if (this.#place === PLACES.quoted) {
      throw new ArchiveError(
        `the quoted field that begins in line ${this.#quoteLine} never ends: how many rows are missing can't be known`,
      );
    }
    // The last row may have no end.
    if (this.#place !== PLACES.before || this.#fieldIndex > 0) this.#endRow();
    if (this.#wanted === undefined) throw this.#noSuchColumn();
  }

  #readOutsideQuotes(byte: number): void {
    if (byte !== CARRIAGE_RETURN) this.#isRowEmpty = false;
    if (byte === QUOTE && this.#place === PLACES.before) {
      this.#place = PLACES.quoted;
      this.#quoteLine = this.#lineNumber;
      return;
    }
    if (byte === QUOTE && this.#place === PLACES.behindQuote) this.#place = PLACES.quoted;
    else if (byte === QUOTE) this.#isMisquoted = true;
    else if (this.#place === PLACES.behindQuote) {
      if (byte === CARRIAGE_RETURN) return;
      this.#isMisquoted = true;
    } else this.#place = PLACES.bare;
    this.#keep(byte);
  }

  #keep(byte: number): void {
    if (this.#wanted !== undefined && this.#fieldIndex !== this.#wanted) return;
    // One more than fits tells that it was too long.
    if (this.#fieldBytes < FIELD_BYTES_MAX) this.#field[this.#fieldBytes] = byte;
    this.#fieldBytes++;
  }

  #endField(): void {
    if (this.#wanted === undefined) this.#takeName();
    else if (this.#fieldIndex === this.#wanted) this.#take();
    this.#place = PLACES.before;
    this.#fieldIndex++;
    this.#fieldBytes = 0;
    this.#isMisquoted = false;
  }

  #endRow(): void {
    this.#endField();
    const fieldCount = this.#fieldIndex;
    if (this.#wanted === undefined) this.#wanted = this.#indexOfName();
    else if (fieldCount <= this.#wanted) this.#takeShortRow(fieldCount);
    this.#fieldIndex = 0;
    this.#isRowEmpty = true;
    this.#rowLine = this.#lineNumber;
  }

  #takeName(): void {
    if (this.#names.length === NAME_COUNT_MAX) {
      throw new ArchiveError(
        `its first row has more than ${NAME_COUNT_MAX} fields: it is no row of names. Give the column's number, from 1`,
      );
    }
    this.#names.push(this.#text().trim());
  }

  #take(): void {
    const [line, bytes] = [this.#rowLine, this.#fieldBytes];
    if (this.#isMisquoted)
      this.#scan.takeMalformed(line, () => `the field ${shown(this.#text())} has a quote where none may be`);
    else if (bytes > FIELD_BYTES_MAX) {
      this.#scan.takeMalformed(line, () => `the field has ${bytes} bytes and begins with ${shown(this.#text())}`);
    } else this.#scan.take(this.#field, 0, bytes, line);
  }

  #takeShortRow(fieldCount: number): void {
    if (this.#isRowEmpty) this.#scan.takeBlank();
    else
      this.#scan.takeMalformed(
        this.#rowLine,
        () => `the row has ${fieldCount === 1 ? "1 field" : `${fieldCount} fields`} only`,
      );
  }

  /** The column of the name in the row of names, which was just read. */
  #indexOfName(): number {
    const index = this.#names.indexOf(String(this.#column));
    if (index < 0) throw this.#noSuchColumn();
    if (this.#names.includes(String(this.#column), index + 1)) {
      throw new ArchiveError(`more than one column is called ${shown(String(this.#column))}: give its number`);
    }
    return index;
  }

  #noSuchColumn(): ArchiveError {
    return new ArchiveError(
      `no column is called ${shown(String(this.#column))}; the first row has ${namesShown(this.#names) || "nothing"}. Where the file has ` +
        "no row of names, give the column's number, from 1",
    );
  }

  #text(): string {
    return this.#field.toString("utf8", 0, Math.min(this.#fieldBytes, FIELD_BYTES_MAX));
  }
}
