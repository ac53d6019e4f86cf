/**
 * The archive: messages by call number, stored create-only. Knows neither mailboxes nor coordinators.
 * Several processes may have one archive open; each write is one transaction.
 *
 * Invariant: a row of `messages` is never changed or replaced. A call number that is already stored is an error.
 */
import { type DatabaseSyncInstance as Database, DatabaseSync } from "@photostructure/sqlite";
import { ImporterError } from "./errors.js";

/** "CNar" in the file's header: distinguishes an archive from any other database. */
const APPLICATION_ID = 0x434e6172;
const SCHEMA_VERSION = 1;

/** How long a process waits for another one that writes: far longer than any transaction here takes. */
const LOCK_TIMEOUT_MS = 60_000;

/**
 * `call_number` is compared byte for byte: in a call number `a` and `A` are different digits, so a case-insensitive
 * collation would take two numbers for one. BINARY is SQLite's default. It is written out because the table may be ported
 * to another database: MySQL and SQL Server ignore case by default.
 *
 * `unique (source, byte_offset, content_hash)` identifies a message of a source: importing the same file again adds
 * nothing. `from_line || raw` are exactly the bytes of the file.
 */
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
pragma user_version = ${SCHEMA_VERSION};
`;

/** Where the call numbers of an archive come from. It never changes. */
export interface Origin {
  readonly storeId: string;
  readonly namespace: string;
}

/** Identifies a message of a source. */
export interface MessageKey {
  readonly source: string;
  readonly byteOffset: number;
  /** SHA-256 of `raw`. */
  readonly contentHash: Buffer;
}

export interface NewMessage extends MessageKey {
  readonly number: number;
  readonly messageId: string | null;
  readonly subject: string | null;
  readonly from: string | null;
  readonly date: string | null;
  readonly dateHeader: string | null;
  readonly fromLine: Buffer | null;
  readonly raw: Buffer;
  readonly problem: string | null;
}

export type StoredMessage = Pick<
  NewMessage,
  "messageId" | "subject" | "from" | "date" | "source" | "number" | "problem"
> & {
  readonly callNumber: string;
};

const SELECT_STORED = `select call_number as callNumber, message_id as messageId, subject, from_header as "from", date,
  source, number, problem from messages`;
const INSERT = `insert into messages (call_number, message_id, subject, from_header, date, date_header, from_line, raw, source,
  number, byte_offset, content_hash, problem) values (:callNumber, :messageId, :subject, :from, :date, :dateHeader,
  :fromLine, :raw, :source, :number, :byteOffset, :contentHash, :problem)`;

const SQLITE_CONSTRAINT_PRIMARYKEY = 1555;

export class Archive implements Disposable {
  readonly path: string;
  readonly #database: Database;
  readonly #find;
  readonly #insert;

  /** Opens the archive, and creates it where there is none. @throws ImporterError `archive_unusable`. */
  constructor(path: string) {
    this.path = path;
    this.#database = openDatabase(path);
    this.#find = this.#database.prepare(`${SELECT_STORED} where source = ? and byte_offset = ? and content_hash = ?`);
    this.#insert = this.#database.prepare(INSERT);
  }

  /** Where its call numbers come from; undefined before the first message. */
  get origin(): Origin | undefined {
    const rows = this.#database.prepare("select name, value from facts").all() as { name: string; value: string }[];
    const { store_id: storeId, namespace } = Object.fromEntries(rows.map(({ name, value }) => [name, value]));
    return storeId === undefined || namespace === undefined ? undefined : { storeId, namespace };
  }

  /** Returns the row of a message that is already stored. @throws ImporterError `archive_failed`. */
  find({ source, byteOffset, contentHash }: MessageKey): StoredMessage | undefined {
    try {
      return this.#find.get(source, byteOffset, contentHash) as StoredMessage | undefined;
    } catch (error) {
      throw this.#withAction(error);
    }
  }

  findByCallNumber(callNumber: string): StoredMessage | undefined {
    const row = this.#database.prepare(`${SELECT_STORED} where call_number = ?`).get(callNumber);
    return row as StoredMessage | undefined;
  }

  /** Returns the first `count` messages in the order of their sources. */
  first(count: number): StoredMessage[] {
    const query = `${SELECT_STORED} order by source, byte_offset, call_number limit ?`;
    return this.#database.prepare(query).all(count) as unknown as StoredMessage[];
  }

  count(): number {
    return Number(this.#database.prepare("select count(*) as n from messages").get()?.["n"]);
  }

  /**
   * Stores each message under the next of `callNumbers`, all or none. A message that another process has stored since it
   * was looked up is left out. Returns how many were stored: the first so many of `callNumbers` are used, the rest are not.
   * @throws ImporterError `repeated_call_number` when a number is already stored; `store_mismatch`, `other_namespace` when
   *   the archive's numbers come from elsewhere; `archive_failed` when SQLite can't write. Nothing is stored then.
   */
  store(messages: readonly NewMessage[], callNumbers: readonly string[], origin: Origin): number {
    if (callNumbers.length < messages.length) throw new RangeError(`${messages.length} messages need as many numbers`);
    try {
      return inTransaction(this.#database, () => {
        this.#pin(origin);
        let stored = 0;
        for (const message of messages) {
          // Under the lock, so that two imports of one file can't both find it missing.
          if (this.find(message) === undefined) this.#insertNew(callNumbers[stored++] as string, message);
        }
        return stored;
      });
    } catch (error) {
      throw this.#withAction(error);
    }
  }

  /** @throws ImporterError when the archive's numbers come from another store or namespace. */
  assertOrigin({ storeId, namespace }: Partial<Origin>): void {
    const pinned = this.origin;
    if (pinned === undefined) return;
    if (storeId !== undefined && storeId !== pinned.storeId) {
      const failure = `The archive ${this.path} is pinned to the store ${pinned.storeId}, but this coordinator leases from ${storeId}`;
      const action = "Pass the URL of the archive's own coordinator with --coordinator.";
      throw new ImporterError(
        "store_mismatch",
        `${failure}.\n${action} If that store is lost, read docs/how-to/recover.md first.`,
      );
    }
    if (namespace !== undefined && namespace !== pinned.namespace) {
      const failure = `The archive ${this.path} is pinned to the namespace ${pinned.namespace}, not ${namespace}`;
      const action = `Pass --namespace ${pinned.namespace}, or another --archive.`;
      throw new ImporterError("other_namespace", `${failure}.\n${action}`);
    }
  }

  close(): void {
    this.#database.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** In the transaction of the first message: an archive without messages is not pinned yet. */
  #pin(origin: Origin): void {
    if (this.origin !== undefined) return this.assertOrigin(origin);
    const insert = this.#database.prepare("insert into facts (name, value) values (?, ?)");
    insert.run("store_id", origin.storeId);
    insert.run("namespace", origin.namespace);
  }

  /** Plain INSERT: no OR IGNORE, no OR REPLACE, no upsert. This is what turns a repeated number into an error. */
  #insertNew(callNumber: string, message: NewMessage): void {
    const { source, number } = message;
    try {
      this.#insert.run({ ...storable(message), callNumber });
    } catch (error) {
      if ((error as { errcode?: number }).errcode !== SQLITE_CONSTRAINT_PRIMARYKEY) throw error;
      const stored = this.findByCallNumber(callNumber);
      throw new ImporterError(
        "repeated_call_number",
        `The call number ${callNumber} of message ${number} of ${source} is already in the archive, as message` +
          ` ${stored?.number} of ${stored?.source}. Nothing was overwritten.\n` +
          "A number was issued twice: stop all importers of this namespace and find the cause first (docs/how-to/recover.md).",
        { cause: error },
      );
    }
  }

  /** Adds to an error of SQLite what to do about it; returns any other error as it is. */
  #withAction(error: unknown): unknown {
    const { errcode, message } = error as { errcode?: number; message?: string };
    if (errcode === undefined) return error;
    const action = "Free disk space, or close the program that uses the archive";
    const text = `The archive ${this.path} failed: ${message}.\n${action}, then run the same command again.`;
    return new ImporterError("archive_failed", text, { cause: error });
  }
}

/**
 * Opens an archive, and creates it where there is none. A file that is no archive is left exactly as it was.
 * @throws ImporterError `archive_unusable` when the file can't be opened or is no archive.
 */
function openDatabase(path: string): Database {
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
    throw new ImporterError("archive_unusable", message, { cause: error });
  }
}

/** Runs `work` in one transaction with the right to write: all of it is stored or nothing. */
function inTransaction<T>(database: Database, work: (database: Database) => T): T {
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
  else if (version !== SCHEMA_VERSION) throw new Error(`its tables are of version ${version}, not ${SCHEMA_VERSION}`);
}

/** For many programs a text in SQLite ends at its first NUL: two Message-IDs that differ after it would look the same. */
function storable(message: NewMessage): Record<string, string | number | Buffer | null> {
  const values = Object.entries(message).map(([name, value]) => [
    name,
    typeof value === "string" ? value.replaceAll("\0", "␀") : value,
  ]);
  return Object.fromEntries(values);
}
