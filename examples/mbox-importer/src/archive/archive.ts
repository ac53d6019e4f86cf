/**
 * The archive: messages by call number, stored create-only. Knows neither mailboxes nor coordinators.
 * Several processes may have one archive open; each write is one transaction.
 *
 * Invariant: a row of `messages` is never changed or replaced. A call number that is already stored is an error.
 */
import { ImporterError } from "../errors.js";
import { type Database, inTransaction, openDatabase } from "./schema.js";

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
const INSERT = `insert into messages (call_number, message_id, subject, from_header, date, date_header, from_line, raw,
  source, number, byte_offset, content_hash, problem) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

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
    const [storeId, namespace] = ["store_id", "namespace"].map(
      (name) => this.#database.prepare("select value from facts where name = ?").get(name)?.["value"],
    ) as [string | undefined, string | undefined];
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
        `${failure}.\n${action} If that store is lost, read docs/operations.md first.`,
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
    const { fromLine, raw, source, number, byteOffset, contentHash } = message;
    const texts = [message.messageId, message.subject, message.from, message.date, message.dateHeader].map(storable);
    try {
      const place = [source, number, byteOffset, contentHash, storable(message.problem)];
      this.#insert.run(callNumber, ...texts, fromLine, raw, ...place);
    } catch (error) {
      if ((error as { errcode?: number }).errcode !== SQLITE_CONSTRAINT_PRIMARYKEY) throw error;
      const stored = this.findByCallNumber(callNumber);
      throw new ImporterError(
        "repeated_call_number",
        `The call number ${callNumber} of message ${number} of ${source} is already in the archive, as message` +
          ` ${stored?.number} of ${stored?.source}. Nothing was overwritten.\n` +
          "A number was issued twice: stop all importers of this namespace and find the cause first (docs/operations.md).",
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

/** For many programs a text in SQLite ends at its first NUL: two Message-IDs that differ after it would look the same. */
function storable(text: string | null): string | null {
  return text === null ? null : text.replaceAll("\0", "␀");
}
