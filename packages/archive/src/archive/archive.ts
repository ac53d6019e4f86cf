/**
 * The archive: messages by call number, stored create-only. Knows neither mailboxes nor coordinators.
 * Several processes may have one archive open; each write is one transaction.
 *
 * Invariant: a row of `messages` is never changed or replaced. A call number that is already stored is an error.
 */
import type { DatabaseSyncInstance as Database } from "@photostructure/sqlite";
import { ArchiveError } from "../errors.js";
import { inTransaction, openDatabase } from "./schema.js";

/**
 * What happens to a message whose bytes, with the separator, are already stored from another place. `skip`: the place is
 * listed in `copies`, under the number of the stored one · `number`: it gets a number of its own.
 */
export type SameContent = "skip" | "number";

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

/** What `Archive.store` did. `sameContent`: messages that were stored before from another place. */
export interface StoreResult {
  readonly stored: readonly { readonly callNumber: string; readonly message: NewMessage }[];
  readonly sameContent: number;
}

export type StoredMessage = Pick<
  NewMessage,
  "messageId" | "subject" | "from" | "date" | "source" | "number" | "problem"
> & {
  readonly callNumber: string;
};

const SELECT_STORED = `select call_number as callNumber, message_id as messageId, subject, from_header as "from", date,
  source, number, problem from messages`;
const SELECT_BY_KEY = `${SELECT_STORED} where source = ? and byte_offset = ? and content_hash = ?`;
const SELECT_COPY = `${SELECT_STORED} where content_hash = ? and call_number in
  (select call_number from copies where source = ? and byte_offset = ?)`;
const SELECT_SAME_CONTENT = `${SELECT_STORED} where content_hash = ? and from_line is ? limit 1`;
const INSERT_COPY = "insert into copies (source, number, byte_offset, call_number) values (?, ?, ?, ?)";
const INSERT = `insert into messages (call_number, message_id, subject, from_header, date, date_header, from_line, raw, source,
  number, byte_offset, content_hash, problem) values (:callNumber, :messageId, :subject, :from, :date, :dateHeader,
  :fromLine, :raw, :source, :number, :byteOffset, :contentHash, :problem)`;

const SQLITE_CONSTRAINT_PRIMARYKEY = 1555;

export class Archive implements Disposable {
  readonly path: string;
  readonly sameContent: SameContent;
  readonly #database: Database;
  readonly #find;
  readonly #findCopy;
  readonly #findSameContent;
  readonly #insert;
  readonly #insertCopy;

  /** Opens the archive, and creates it where there is none. @throws ArchiveError `archive_unusable`. */
  constructor(path: string, sameContent: SameContent = "skip") {
    this.path = path;
    this.sameContent = sameContent;
    this.#database = openDatabase(path);
    this.#find = this.#database.prepare(SELECT_BY_KEY);
    this.#findCopy = this.#database.prepare(SELECT_COPY);
    this.#findSameContent = this.#database.prepare(SELECT_SAME_CONTENT);
    this.#insert = this.#database.prepare(INSERT);
    this.#insertCopy = this.#database.prepare(INSERT_COPY);
  }

  /** Where its call numbers come from; undefined before the first message. */
  get origin(): Origin | undefined {
    const rows = this.#database.prepare("select name, value from facts").all() as { name: string; value: string }[];
    const { store_id: storeId, namespace } = Object.fromEntries(rows.map(({ name, value }) => [name, value]));
    return storeId === undefined || namespace === undefined ? undefined : { storeId, namespace };
  }

  /**
   * Returns the row of a message that is already stored, or listed as a copy; the latter with `skip` only.
   * @throws ArchiveError `archive_failed`.
   */
  find({ source, byteOffset, contentHash }: MessageKey): StoredMessage | undefined {
    return this.#orAction(() => {
      const row = this.#find.get(source, byteOffset, contentHash);
      if (row !== undefined || this.sameContent === "number") return row as StoredMessage | undefined;
      return this.#findCopy.get(contentHash, source, byteOffset) as StoredMessage | undefined;
    });
  }

  /** Returns a stored message with exactly these bytes, from whatever place. @throws ArchiveError `archive_failed`. */
  findSameContent({ contentHash, fromLine }: Pick<NewMessage, "contentHash" | "fromLine">): StoredMessage | undefined {
    return this.#orAction(() => this.#findSameContent.get(contentHash, fromLine) as StoredMessage | undefined);
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
   * Stores each message under the next of `callNumbers`, or as a copy, all or none. A message that another process has
   * stored since it was looked up is left out. The first so many of `callNumbers` as there are in `stored` are used.
   * @throws RangeError when there are fewer numbers than needed; ArchiveError `repeated_call_number` when a number is
   *   already stored; `store_mismatch`, `other_namespace` when the archive's numbers come from elsewhere; `archive_failed`
   *   when SQLite can't write. Nothing is stored then.
   */
  store(messages: readonly NewMessage[], callNumbers: readonly string[], origin: Origin): StoreResult {
    return this.#orAction(() =>
      inTransaction(this.#database, () => {
        this.#pin(origin);
        const stored: { callNumber: string; message: NewMessage }[] = [];
        let sameContent = 0;
        for (const message of messages) {
          // Under the lock, so that two imports of one file can't both find it missing.
          if (this.find(message) !== undefined) continue;
          const same = this.findSameContent(message);
          if (same !== undefined) sameContent++;
          if (same !== undefined && this.sameContent === "skip") {
            this.#insertCopy.run(message.source, message.number, message.byteOffset, same.callNumber);
            continue;
          }
          const callNumber = callNumbers[stored.length];
          if (callNumber === undefined) throw new RangeError(`${callNumbers.length} numbers are too few`);
          this.#insertNew(callNumber, message);
          stored.push({ callNumber, message });
        }
        return { stored, sameContent };
      }),
    );
  }

  /** @throws ArchiveError when the archive's numbers come from another store or namespace. */
  assertOrigin({ storeId, namespace }: Partial<Origin>): void {
    const pinned = this.origin;
    if (pinned === undefined) return;
    if (storeId !== undefined && storeId !== pinned.storeId) {
      const failure = `The archive ${this.path} is pinned to the store ${pinned.storeId}, but this coordinator leases from ${storeId}`;
      const action = "Pass the URL of the archive's own coordinator with --coordinator.";
      throw new ArchiveError(
        "store_mismatch",
        `${failure}.\n${action} If that store is lost, read docs/how-to/recover.md first.`,
      );
    }
    if (namespace !== undefined && namespace !== pinned.namespace) {
      const failure = `The archive ${this.path} is pinned to the namespace ${pinned.namespace}, not ${namespace}`;
      const action = `Pass --namespace ${pinned.namespace}, or another --archive.`;
      throw new ArchiveError("other_namespace", `${failure}.\n${action}`);
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
      throw new ArchiveError(
        "repeated_call_number",
        `The call number ${callNumber} of message ${number} of ${source} is already in the archive, as message` +
          ` ${stored?.number} of ${stored?.source}. Nothing was overwritten.\n` +
          "A number was issued twice: stop all importers of this namespace and find the cause first (docs/how-to/recover.md).",
        { cause: error },
      );
    }
  }

  /** Adds to an error of SQLite what to do about it; any other error stays as it is. */
  #orAction<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      const { errcode, message } = error as { errcode?: number; message?: string };
      if (errcode === undefined) throw error;
      const action = "Free disk space, or close the program that uses the archive";
      const text = `The archive ${this.path} failed: ${message}.\n${action}, then run the same command again.`;
      throw new ArchiveError("archive_failed", text, { cause: error });
    }
  }
}

/** For many programs a text in SQLite ends at its first NUL: two Message-IDs that differ after it would look the same. */
function storable(message: NewMessage): Record<string, string | number | Buffer | null> {
  const values = Object.entries(message).map(([name, value]) => [
    name,
    typeof value === "string" ? value.replaceAll("\0", "␀") : value,
  ]);
  return Object.fromEntries(values);
}
