/**
 * Opens the SQLite file of an archive, makes the tables where there are none, and refuses files that are something else.
 */
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { ImporterError } from "../errors.js";
import { unusableArchive } from "./archive-errors.js";
import { APPLICATION_ID, SCHEMA, SCHEMA_VERSION } from "./schema.js";

export type Database = DatabaseSyncInstance;

/** How long a process waits for another one that writes: far longer than any transaction here takes. */
const LOCK_WAIT_MS = 60_000;

/**
 * Every connection says WAL and FULL itself: a commit is on the disk before a number counts as given, whatever defaults
 * SQLite was built with. The timeout goes to the constructor, because the switch to WAL already needs it. A file that is
 * no archive is left exactly as it was.
 * @throws ImporterError `archive_unusable` when the file can't be opened or is no archive.
 */
export function openArchiveFile(path: string): Database {
  let database: Database | undefined;
  try {
    database = new DatabaseSync(path, { timeout: LOCK_WAIT_MS });
    inTransaction(database, (open) => makeOrCheckTables(open, path));
    database.exec("pragma journal_mode = wal; pragma synchronous = full;");
    return database;
  } catch (error) {
    database?.close();
    throw error instanceof ImporterError ? error : unusableArchive(path, (error as Error).message, error);
  }
}

/** Runs `work` with the right to write, all or nothing. */
export function inTransaction<T>(database: Database, work: (database: Database) => T): T {
  database.exec("begin immediate");
  try {
    const result = work(database);
    database.exec("commit");
    return result;
  } catch (error) {
    // A full disk makes SQLite roll back by itself.
    if (database.isTransaction) database.exec("rollback");
    throw error;
  }
}

function makeOrCheckTables(database: Database, path: string): void {
  const applicationId = numberOf(database, "pragma application_id");
  const version = numberOf(database, "pragma user_version");
  const tables = numberOf(database, "select count(*) from sqlite_schema");
  if (tables === 0 && applicationId === 0 && version === 0) database.exec(SCHEMA);
  else if (applicationId !== APPLICATION_ID) throw unusableArchive(path, "it is a database of something else");
  else if (version !== SCHEMA_VERSION)
    throw unusableArchive(path, `its tables are of version ${version}, not ${SCHEMA_VERSION}`);
}

function numberOf(database: Database, query: string): number {
  return Number(Object.values(database.prepare(query).get() ?? {})[0]);
}
