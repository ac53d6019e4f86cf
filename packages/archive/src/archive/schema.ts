/**
 * The file of an archive: its tables, how it is opened, and how an older one is brought to the tables of today. Several processes may have
 * one archive open; each write is one transaction. README.md describes the tables for other programs.
 */

import { existsSync } from "node:fs";
import { dirname, isAbsolute, relative } from "node:path";
import { type DatabaseSyncInstance as Database, DatabaseSync } from "@photostructure/sqlite";
import { ArchiveError, damage } from "../errors.js";
import { parseMessage } from "../message/parse-message.js";
import { digestsOf, RELATIONS, SAME_RULES } from "../message/sameness.js";
import { assertOneName } from "./archive-file.js";
import { messageInserter, type NewMessage } from "./insert-message.js";

/** "CNar" in the file's header: distinguishes an archive from any other database. */
export const APPLICATION_ID = 0x434e6172;
export const SCHEMA_VERSION = 4;

/** How long a process waits for another one that writes: far longer than any transaction here takes. */
const LOCK_TIMEOUT_MS = 60_000;

/**
 * `call_number` is compared byte for byte: in a call number `a` and `A` are different digits, so a case-insensitive
 * collation would take two numbers for one. BINARY is SQLite's default. It is written out because the table may be ported
 * to another database: MySQL and SQL Server ignore case by default.
 *
 * `unique (source, byte_offset, content_hash)` identifies a message of a source: importing the same file again adds
 * nothing. `from_line || raw` are exactly the bytes of the file. What can be derived from `raw` is for reading and searching;
 * `thread` is the only column that may change, when an earlier message of the thread arrives later.
 */
const MESSAGES = `
create table messages (
  call_number text collate binary primary key not null check (length(call_number) = 8),
  message_id text,
  subject text,
  from_header text,
  to_header text,
  date text,
  date_header text,
  in_reply_to text,
  references_header text,
  thread text not null,
  list text,
  is_list_given integer not null,
  from_line blob,
  raw blob not null,
  source text not null,
  number integer not null,
  byte_offset integer not null,
  content_hash blob not null check (length(content_hash) = 32),
  message_hash blob not null check (length(message_hash) = 32),
  body_hash blob not null check (length(body_hash) = 32),
  problem text,
  unique (source, byte_offset, content_hash)
) strict;

create index messages_by_message_id on messages (message_id) where message_id is not null;
create index messages_by_message_hash on messages (message_hash);
create index messages_by_list on messages (list, date);
create index messages_by_thread on messages (thread);
`;

/**
 * `copies`: other places at which a stored message was found, and by which rule · `relations`: messages of one Message-ID that are not the
 * same · `old_links`: addresses that the message had in another archive, with path and query · `known_numbers`: of a file of numbers, those
 * whose messages are not here; the digests are its shorter ones.
 */
const OTHERS = `
create table copies (
  source text not null,
  number integer not null,
  byte_offset integer not null,
  content_hash blob not null check (length(content_hash) = 32),
  call_number text collate binary not null references messages,
  why text not null check (why in ('${SAME_RULES.join("', '")}')),
  primary key (source, byte_offset, content_hash)
) strict, without rowid;

create table relations (
  call_number text collate binary primary key not null references messages,
  other text collate binary not null references messages,
  kind text not null check (kind in ('${RELATIONS.join("', '")}'))
) strict, without rowid;

create table old_links (
  url text primary key not null,
  call_number text collate binary not null references messages
) strict, without rowid;

create index old_links_by_call_number on old_links (call_number);

create table known_numbers (
  call_number text collate binary primary key not null,
  bytes blob not null,
  message blob not null,
  body blob not null,
  message_id text,
  list text,
  is_list_given integer not null,
  links text not null,
  line integer not null default 0
) strict, without rowid;

create index known_numbers_by_message on known_numbers (message);
create index known_numbers_by_message_id on known_numbers (message_id);

pragma user_version = ${SCHEMA_VERSION};
`;

const SCHEMA = `
create table facts (
  name text primary key,
  value text not null
) strict;
${MESSAGES}
${OTHERS}
pragma application_id = ${APPLICATION_ID};`;

/** For what only reads or adds to an archive: opened, it would be created. @throws ArchiveError `archive_unusable`. */
export function assertArchiveAt(path: string): void {
  if (!existsSync(path)) throw new ArchiveError("archive_unusable", `There is no archive at ${path}. Check --archive.`);
}

/**
 * Opens an archive, and creates it where there is none. A file that is no archive is left exactly as it was.
 * @throws ArchiveError `archive_unusable` when the file can't be opened or is no archive.
 */
export function openDatabase(path: string): Database {
  let database: Database | undefined;
  try {
    assertOneName(path);
    // The timeout goes to the constructor, because the switch to WAL already needs it.
    database = new DatabaseSync(path, { timeout: LOCK_TIMEOUT_MS });
    inTransaction(database, () => createOrCheckTables(database as Database, path));
    // A commit is on the disk before its numbers count as used, whatever defaults SQLite was built with.
    database.exec("pragma journal_mode = wal; pragma synchronous = full;");
    // In pages of 4 KiB and in KiB: the indexes of digests are written all over the file.
    database.exec("pragma wal_autocheckpoint = 4000; pragma cache_size = -32000;");
    return database;
  } catch (error) {
    database?.close();
    if (damage(error) !== undefined) throw error;
    const action = "Pass --archive the path of an archive of this importer, or of a new file in an existing directory.";
    const message = `The archive ${path} can't be used: ${(error as Error).message}. ${action}`;
    throw new ArchiveError("archive_unusable", message, { cause: error });
  }
}

/** Runs `work` in one transaction with the right to write: all of it is stored or nothing. */
export function inTransaction<T>(database: Database, work: () => T): T {
  database.exec("begin immediate");
  try {
    const result = work();
    database.exec("commit");
    return result;
  } catch (error) {
    // SQLite has already rolled back when the disk is full.
    if (database.isTransaction) database.exec("rollback");
    throw error;
  }
}

function createOrCheckTables(database: Database, path: string): void {
  const [applicationId, version, tables] = [
    "pragma application_id",
    "pragma user_version",
    "select count(*) from sqlite_schema",
  ].map((query) => Number(Object.values(database.prepare(query).get() ?? {})[0]));
  if (tables === 0 && applicationId === 0 && version === 0) database.exec(SCHEMA);
  else if (applicationId !== APPLICATION_ID) throw new Error("it is a database of another program");
  else if (version === 1 || version === 2) renewTables(database, path, version);
  else if (version === 3)
    database.exec(
      `alter table known_numbers add column line integer not null default 0; pragma user_version = ${SCHEMA_VERSION}`,
    );
  else if (version !== SCHEMA_VERSION) throw new Error(`its tables are of version ${version}, not ${SCHEMA_VERSION}`);
}

/** Each message keeps its number, its place and its bytes; what is derived from them is derived again, which reads all of it. */
function renewTables(database: Database, path: string, version: number): void {
  const copies = version === 1 ? [] : database.prepare("select * from copies").all();
  database.exec(`${version === 1 ? "" : "drop table copies;"} drop index messages_by_message_id; drop index messages_by_content;
    alter table messages rename to old_messages; ${MESSAGES} ${OTHERS}`);
  const insert = messageInserter(database);
  for (const row of database.prepare("select * from old_messages order by rowid").iterate()) {
    const [raw, fromLine] = [row["raw"], row["from_line"]].map((bytes) => bytes && Buffer.from(bytes as Uint8Array));
    const fields = parseMessage(raw as Buffer);
    const list = { list: fields.listId, isListGiven: false };
    const kept = { number: row["number"], byteOffset: row["byte_offset"], problem: row["problem"] };
    const message = {
      ...fields,
      ...digestsOf(raw as Buffer),
      ...list,
      ...kept,
      fromLine,
      raw,
    } as unknown as NewMessage;
    insert(row["call_number"] as string, sourceName(path, row["source"] as string), message);
  }
  database.exec("drop table old_messages");
  const insertCopy =
    database.prepare(`insert into copies select ?, ?, ?, content_hash, call_number, 'separator-and-bytes'
    from messages where call_number = ?`);
  for (const { source, number, byte_offset: offset, call_number: callNumber } of copies) {
    insertCopy.run(sourceName(path, source as string), number as number, offset as number, callNumber as string);
  }
}

/** A source in the archive's directory is named from there, so that the directory can be moved. `source`: absolute, or `-` for standard input. */
export function sourceName(archivePath: string, source: string): string {
  if (!isAbsolute(source)) return source;
  const name = relative(dirname(archivePath), source);
  return name.startsWith("..") || isAbsolute(name) ? source : name;
}
