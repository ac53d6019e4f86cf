/**
 * The archive: messages by call number, stored create-only. Knows neither mboxes nor coordinators.
 * Several processes may hold one archive open; every writing step is one transaction.
 *
 * Invariant: a row of `messages` is never changed or replaced. A call number that stands already is an error.
 */
import { otherNamespace, otherStore, repeatedCallNumber, sqliteFailure } from "./archive-errors.js";
import { type Database, inTransaction, openArchiveFile } from "./archive-file.js";
import { type ArchiveCounts, countsOf } from "./counts.js";

/** Where the numbers of an archive come from, for its whole life. */
export interface Origin {
  readonly storeId: string;
  readonly namespace: string;
}

/** Which message of which source. */
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

export interface StoredMessage {
  readonly callNumber: string;
  readonly messageId: string | null;
  readonly subject: string | null;
  readonly from: string | null;
  readonly date: string | null;
  readonly source: string;
  readonly problem: string | null;
}

const SELECT_STORED = `select call_number as callNumber, message_id as messageId, subject, from_header as "from", date, source, problem
  from messages`;
const INSERT = `insert into messages (call_number, message_id, subject, from_header, date, date_header, from_line, raw,
  source, number, byte_offset, content_hash, problem) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const SQLITE_CONSTRAINT_PRIMARYKEY = 1555;

export class Archive implements Disposable {
  readonly path: string;
  readonly #database: Database;
  readonly #find;
  readonly #insert;

  /** Opens the archive; makes it where there is none. @throws ImporterError `archive_unusable`. */
  constructor(path: string) {
    this.path = path;
    this.#database = openArchiveFile(path);
    this.#find = this.#database.prepare(`${SELECT_STORED} where source = ? and byte_offset = ? and content_hash = ?`);
    this.#insert = this.#database.prepare(INSERT);
  }

  /** Where its numbers come from; undefined before the first message. */
  get origin(): Origin | undefined {
    const storeId = this.#fact("store_id");
    const namespace = this.#fact("namespace");
    return storeId === undefined || namespace === undefined ? undefined : { storeId, namespace };
  }

  /** The row of a message, when it is there already. @throws ImporterError `archive_failed`. */
  find(key: MessageKey): StoredMessage | undefined {
    try {
      return this.#find.get(key.source, key.byteOffset, key.contentHash) as StoredMessage | undefined;
    } catch (error) {
      throw sqliteFailure(this.path, error);
    }
  }

  findByCallNumber(callNumber: string): StoredMessage | undefined {
    return this.#database.prepare(`${SELECT_STORED} where call_number = ?`).get(callNumber) as
      | StoredMessage
      | undefined;
  }

  /** The first `count` messages in the order of their sources. */
  first(count: number): StoredMessage[] {
    const query = `${SELECT_STORED} order by source, byte_offset, call_number limit ?`;
    return this.#database.prepare(query).all(count) as unknown as StoredMessage[];
  }

  counts(): ArchiveCounts {
    return countsOf(this.#database);
  }

  /**
   * Stores each message under the next of `callNumbers`, all or none. A message that another process stored since it was
   * looked up is left out. Returns the numbers that were used, in order; the rest of `callNumbers` is unused.
   * @throws ImporterError `repeated_call_number` when a number stands already; `other_store`, `other_namespace` when the
   *   archive's numbers come from elsewhere; `archive_failed` when SQLite can't write. Nothing is stored then.
   */
  store(messages: readonly NewMessage[], callNumbers: readonly string[], origin: Origin): string[] {
    if (callNumbers.length < messages.length) throw new RangeError(`${messages.length} messages need as many numbers`);
    try {
      return inTransaction(this.#database, () => {
        this.#pin(origin);
        const used: string[] = [];
        for (const message of messages) {
          // Under the lock, so that two imports of one file can't both find it missing.
          if (this.find(message) === undefined) used.push(this.#insertNew(callNumbers[used.length] as string, message));
        }
        return used;
      });
    } catch (error) {
      throw sqliteFailure(this.path, error);
    }
  }

  /** @throws ImporterError when the archive's numbers come from another store or namespace. */
  mustComeFrom(origin: Partial<Origin>): void {
    const pinned = this.origin;
    if (pinned === undefined) return;
    if (origin.storeId !== undefined && origin.storeId !== pinned.storeId)
      throw otherStore(this.path, pinned.storeId, origin.storeId);
    if (origin.namespace !== undefined && origin.namespace !== pinned.namespace) {
      throw otherNamespace(this.path, pinned.namespace, origin.namespace);
    }
  }

  close(): void {
    this.#database.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** In the transaction of the first message: an archive without messages belongs to nobody yet. */
  #pin(origin: Origin): void {
    if (this.origin !== undefined) return this.mustComeFrom(origin);
    const insert = this.#database.prepare("insert into facts (name, value) values (?, ?)");
    insert.run("store_id", origin.storeId);
    insert.run("namespace", origin.namespace);
  }

  #fact(name: string): string | undefined {
    return this.#database.prepare("select value from facts where name = ?").get(name)?.["value"] as string | undefined;
  }

  /** Plain INSERT: no OR IGNORE, no OR REPLACE, no upsert. This is what turns a repeated number into an error. */
  #insertNew(callNumber: string, message: NewMessage): string {
    const { fromLine, raw, source, number, byteOffset, contentHash } = message;
    const texts = [message.messageId, message.subject, message.from, message.date, message.dateHeader].map(storable);
    const place = [source, number, byteOffset, contentHash, storable(message.problem)];
    try {
      this.#insert.run(callNumber, ...texts, fromLine, raw, ...place);
      return callNumber;
    } catch (error) {
      if ((error as { errcode?: number }).errcode !== SQLITE_CONSTRAINT_PRIMARYKEY) throw error;
      throw repeatedCallNumber(callNumber, message, this.findByCallNumber(callNumber)?.source, error);
    }
  }
}

/** For many programs a text in SQLite ends at its first NUL: two Message-IDs that differ behind it would look the same. */
function storable(text: string | null): string | null {
  return text === null ? null : text.replaceAll("\0", "␀");
}
