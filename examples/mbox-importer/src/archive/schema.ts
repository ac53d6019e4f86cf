/**
 * The tables of an archive. One SQLite file, read with any tool that reads SQLite.
 */

/** "CNar" in the file's header: an archive is told apart from any other database. */
export const APPLICATION_ID = 0x434e6172;
export const SCHEMA_VERSION = 1;

/**
 * `call_number` is compared byte for byte: in a number `a` and `A` are different digits, so a case-blind collation would
 * take two numbers for one. BINARY is SQLite's default and stands here so that nobody ports the table to another database
 * without meeting the question (MySQL and SQL Server compare blind to case unless they are told).
 *
 * `unique (source, byte_offset, content_hash)` says which message of which source a row is: the same file imported again
 * adds nothing. `from_line || raw` are exactly the bytes of the file.
 */
export const SCHEMA = `
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
pragma user_version = ${SCHEMA_VERSION};
`;
