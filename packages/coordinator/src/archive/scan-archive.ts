/**
 * Reads an archive for the greatest run among its call numbers: text, CSV or SQLite, told apart by how it begins and by the
 * column that was asked for.
 */
import { createReadStream, statSync } from "node:fs";
import { ArchiveError } from "./archive-error.js";
import { ArchiveScan, type ScanResult } from "./archive-scan.js";
import { beginningOf } from "./beginning.js";
import { type CsvColumn, scanCsvColumn } from "./csv-column.js";
import { scanLines } from "./text-lines.js";

const CHUNK_BYTES = 1_048_576;

export interface ArchiveOptions {
  /** The path of a file; or the bytes of a stream. */
  readonly source: string | AsyncIterable<Buffer>;
  /** Undefined for text, one call number a line; `TABLE.COLUMN` of an SQLite database; name or number of a column of a CSV file. */
  readonly column: string | undefined;
  /** Files that are never opened: those of an embedded store, whose locks would be lost. */
  readonly never: readonly string[];
}

/**
 * Reads all of it, in constant memory.
 * @throws ArchiveError when it can't be read as what it is asked for. What is malformed in it is counted, not thrown.
 */
export async function scanArchive({ source, column, never }: ArchiveOptions): Promise<ScanResult> {
  const name = typeof source === "string" ? source : "standard input";
  const scan = new ArchiveScan();
  try {
    if (typeof source === "string") mustBeNoneOf(source, never);
    const bytes = typeof source === "string" ? createReadStream(source, { highWaterMark: CHUNK_BYTES }) : source;
    const { isSqlite, remedy, chunks } = await beginningOf(bytes as AsyncIterable<Buffer>);
    if (isSqlite) {
      if (typeof source !== "string")
        throw new ArchiveError("it is an SQLite database: give its path, with --scan-column TABLE.COLUMN");
      await scanSqlite(source, column, scan);
    } else if (remedy !== undefined) throw new ArchiveError(remedy);
    else if (column === undefined) await scanLines(chunks, scan);
    else await scanCsvColumn(chunks, csvColumnIn(column), scan);
  } catch (error) {
    const isReason = error instanceof ArchiveError || (error as NodeJS.ErrnoException).syscall !== undefined;
    if (!isReason) throw error;
    throw new ArchiveError(`${name} can't be scanned: ${(error as Error).message}`, { cause: error });
  }
  return scan.result;
}

/** By what they are, not by what they are called. @throws ArchiveError */
export function mustBeNoneOf(path: string, never: readonly string[]): void {
  const { dev, ino } = statSync(path, { bigint: true });
  for (const other of never) {
    const found = statSync(other, { bigint: true, throwIfNoEntry: false });
    if (found?.dev === dev && found.ino === ino)
      throw new ArchiveError("it is a file of the store itself, not of an archive");
  }
}

async function scanSqlite(path: string, column: string | undefined, scan: ArchiveScan): Promise<void> {
  const [, table, name] = /^([^.]+)\.([^.]+)$/.exec(column ?? "") ?? [];
  if (table === undefined || name === undefined) {
    throw new ArchiveError(
      "it is an SQLite database: say which column holds the call numbers, --scan-column TABLE.COLUMN",
    );
  }
  const { scanSqliteColumn } = await import("./sqlite-column.js");
  scanSqliteColumn(path, { table, column: name }, scan);
}

function csvColumnIn(column: string): CsvColumn {
  return /^[1-9]\d{0,5}$/.test(column) ? Number(column) : column;
}
