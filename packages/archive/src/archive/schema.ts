/**
 * The file of an archive: its tables, and how it is opened. Several processes may have one archive open; each write is one
 * transaction.
 */
import { type DatabaseSyncInstance as Database, DatabaseSync } from "@photostructure/sqlite";
import { ArchiveError } from "../errors.js";

/** "CNar" in the file's header: distinguishes an archive from any other database. */
const APPLICATION_ID = 0x434e6172;
const SCHEMA_VERSION = 2;

/** How long a process waits for another one that writes: far longer than any transaction here takes. */
const LOCK_TIMEOUT_MS = 60_000;

/**
 * `call_number` is compared byte for byte: in a call number `a` and `A` are different digits, so a case-insensitive
 * collation would take two numbers for one. BINARY is SQLite's default. It is written out because the table may be ported
 * to another database: MySQL and SQL Server ignore case by default.
 *
 * `unique (source, byte_offset, content_hash)` identifies a message of a source: importing the same file again adds
 * nothing. `from_line || raw` are exactly the bytes of the file.
 *
 * `copies`: other places at which exactly the bytes of a stored message were found. New in version 2.
 */
const COPIES = `
create table copies (
  source text not null,
  number integer not null,
  byte_offset integer not null,
  call_number text collate binary not null references messages,
  primary key (source, byte_offset, call_number)
) strict, without rowid;

pragma user_version = ${SCHEMA_VERSION};
`;

const SCHEMA = `
create table facts (
  name text primary key,
  value text not null
) strict;

create table messages (
  call_number text collate binary primary key not null check (length(call_number) = 8),
  message_id text,
  subject text,
  from_header text,
  date text,
  date_header text,
  from_line blob,
  raw blob not null,
  source text not null,
  number integer not null,
  byte_offset integer not null,
  content_hash blob not null check (length(content_hash) = 32),
  problem text,
  unique (source, byte_offset, content_hash)
) strict;

create index messages_by_message_id on messages (message_id) where message_id is not null;
create index messages_by_content on messages (content_hash);

pragma application_id = ${APPLICATION_ID};
${COPIES}`;

/**
 * Opens an archive, and creates it where there is none. A file that is no archive is left exactly as it was.
 * @throws ArchiveError `archive_unusable` when the file can't be opened or is no archive.
 */
export function openDatabase(path: string): Database {
  let database: Database | undefined;
  try {
    // The timeout goes to the constructor, because the switch to WAL already needs it.
    database = new DatabaseSync(path, { timeout: LOCK_TIMEOUT_MS });
    inTransaction(database, createOrCheckTables);
    // A commit is on the disk before its numbers count as used, whatever defaults SQLite was built with.
    database.exec("pragma journal_mode = wal; pragma synchronous = full;");
    return database;
  } catch (error) {
    database?.close();
    const action = "Pass --archive the path of an archive of this importer, or of a new file in an existing directory.";
    const message = `The archive ${path} can't be used: ${(error as Error).message}. ${action}`;
    throw new ArchiveError("archive_unusable", message, { cause: error });
  }
}

/** Runs `work` in one transaction with the right to write: all of it is stored or nothing. */
export function inTransaction<T>(database: Database, work: (database: Database) => T): T {
  database.exec("begin immediate");
  try {
    const result = work(database);
    database.exec("commit");
    return result;
  } catch (error) {
    // SQLite has already rolled back when the disk is full.
    if (database.isTransaction) database.exec("rollback");
    throw error;
  }
}

function createOrCheckTables(database: Database): void {
  const [applicationId, version, tables] = [
    "pragma application_id",
    "pragma user_version",
    "select count(*) from sqlite_schema",
  ].map((query) => Number(Object.values(database.prepare(query).get() ?? {})[0]));
  if (tables === 0 && applicationId === 0 && version === 0) database.exec(SCHEMA);
  else if (applicationId !== APPLICATION_ID) throw new Error("it is a database of another program");
  else if (version === 1) database.exec(COPIES);
  else if (version !== SCHEMA_VERSION) throw new Error(`its tables are of version ${version}, not ${SCHEMA_VERSION}`);
}
