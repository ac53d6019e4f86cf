/**
 * An archive's call numbers as a column of an SQLite database: as text, or as the whole number that a call number writes. The
 * database is opened to be read only. SQLite itself walks through the table and hands over one value after the other.
 */
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { ArchiveError } from "./archive-error.js";
import type { ArchiveScan } from "./archive-scan.js";
import { namesShown, shown } from "./shown.js";

export interface SqliteColumn {
  readonly table: string;
  readonly column: string;
}

/** No text that is longer holds a call number. */
const TEXT_BYTES_MAX = 4_096;

/**
 * Reads all rows of the column into the scan.
 * @throws ArchiveError when there is no such table or column, or SQLite can't read it.
 */
export function scanSqliteColumn(path: string, { table, column }: SqliteColumn, scan: ArchiveScan): void {
  let database: DatabaseSyncInstance | undefined;
  try {
    database = new DatabaseSync(path, { readOnly: true });
    mustHave(database, { table, column });
    database.function("take_into_scan", takerInto(scan));
    database.prepare(`SELECT count(take_into_scan(${quoted(table)}.${quoted(column)})) FROM ${quoted(table)}`).get();
  } catch (error) {
    if (error instanceof ArchiveError) throw error;
    throw new ArchiveError((error as Error).message, { cause: error });
  } finally {
    database?.close();
  }
}

/** SQLite takes an unknown name in quotes for a text, and a text of eight characters for a call number: so the names are looked up. */
function mustHave(database: DatabaseSyncInstance, { table, column }: SqliteColumn): void {
  const columns = namesIn(database, "SELECT name FROM pragma_table_xinfo(?)", table);
  if (columns.length === 0) {
    const tables = namesIn(
      database,
      "SELECT name FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    );
    throw new ArchiveError(`it has no table ${shown(table)}, but ${namesShown(tables) || "none"}`);
  }
  if (!columns.some((name) => name.toLowerCase() === column.toLowerCase())) {
    throw new ArchiveError(`table ${shown(table)} has no column ${shown(column)}, but ${namesShown(columns)}`);
  }
}

function namesIn(database: DatabaseSyncInstance, query: string, ...parameters: string[]): string[] {
  return (database.prepare(query).all(...parameters) as { name: string }[]).map(({ name }) => name);
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function takerInto(scan: ArchiveScan): (value: unknown) => null {
  const bytes = Buffer.alloc(TEXT_BYTES_MAX);
  return (value) => {
    if (value === null) scan.takeBlank();
    else if (typeof value === "number") scan.takeNumber(value);
    else if (typeof value !== "string") scan.takeMalformed(null, () => "a value is neither text nor a whole number");
    else if (value.length * 3 > TEXT_BYTES_MAX) scan.takeMalformed(null, () => `a text has ${value.length} characters`);
    else scan.take(bytes, 0, bytes.write(value, "utf8"), null);
    return null;
  };
}
