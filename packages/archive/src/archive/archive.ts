/**
 * The archive: messages by call number, stored create-only. Knows neither mailboxes nor coordinators.
 * Several processes may have one archive open; each write is one transaction.
 *
 * Invariant: a row of `messages` is never changed or replaced. A call number that is already stored is an error.
 */
import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { DatabaseSyncInstance as Database } from "@photostructure/sqlite";
import { ArchiveError, damage } from "../errors.js";
import { RELATIONS, type Relation, relationOf, SAME_RULES, type SameRule } from "../message/sameness.js";
import { KnownNumbers } from "../numbers/known-numbers.js";
import type { NumbersEntry, Origin } from "../numbers/numbers-file.js";
import { fileAt, OpenFiles, replaced } from "./archive-file.js";
import { type MessageKey, messageInserter, type NewMessage } from "./insert-message.js";
import { type Same, type SameContent, SameMessages } from "./same-messages.js";
import { inTransaction, openDatabase, sourceName } from "./schema.js";

export interface SamePolicy {
  readonly sameContent: SameContent;
  /** The weakest rule by which two messages are the same one. */
  readonly weakestRule: SameRule;
}

/** What was found before the archive was locked: it still holds if `version` does. */
export interface LookUp {
  readonly version: string;
  readonly same: ReadonlyMap<NewMessage, Same>;
}

export interface StoredNow {
  readonly callNumber: string;
  readonly message: NewMessage;
  /** The number is of a file of numbers: the message had it before. */
  readonly isRestored: boolean;
}

/** What `Archive.store` did. */
export interface StoreResult {
  readonly stored: readonly StoredNow[];
  /** How many of the fresh numbers are used: the first ones. */
  readonly usedCount: number;
  /** Messages that are stored from another place, by rule; with `number` they are in `stored`, too. */
  readonly copies: Readonly<Record<SameRule, number>>;
  /** Of those in `stored`, how many have the Message-ID of an earlier one. */
  readonly relations: Readonly<Record<Relation, number>>;
}

export const NOTHING_STORED: StoreResult = {
  stored: [],
  usedCount: 0,
  copies: counts(SAME_RULES),
  relations: counts(RELATIONS),
};

export type StoredMessage = Pick<
  NewMessage,
  "messageId" | "subject" | "from" | "date" | "source" | "number" | "problem"
> & {
  readonly callNumber: string;
};

/** What is asked of a message that is not new. */
export type Stored = Pick<StoredMessage, "callNumber" | "problem">;

const SELECT_STORED = `select call_number as callNumber, message_id as messageId, subject, from_header as "from", date,
  source, number, problem from messages`;
/** Text is read several times faster than the bytes of a digest. */
const selectPart = (from: string, place: string) =>
  `select ${place}.byte_offset || hex(${place}.content_hash) as place, messages.call_number as callNumber, problem
   from ${from} where ${place}.source = ?1 and ${place}.byte_offset between ?2 and ?3`;
const SELECT_MESSAGES_IN = selectPart("messages", "messages");
const SELECT_COPIES_IN = selectPart("copies join messages using (call_number)", "copies");
const INSERT_COPY = `insert into copies (source, number, byte_offset, content_hash, call_number, why)
  values (?, ?, ?, ?, ?, ?)`;
const INSERT_RELATION = "insert into relations (call_number, other, kind) values (?, ?, ?)";

const SQLITE_CONSTRAINT_PRIMARYKEY = 1555;

export class Archive implements Disposable {
  readonly path: string;
  readonly policy: SamePolicy;
  readonly known: KnownNumbers;
  readonly #database: Database;
  readonly #storedIn;
  readonly #same;
  readonly #insert;
  readonly #insertCopy;
  readonly #insertRelation;
  readonly #version;
  readonly #files: OpenFiles;
  #storeCount = 0;
  #lastName: { readonly source: string; readonly name: string } | undefined;

  /**
   * Opens the archive, and creates it where there is none. One of an older version is brought to the tables of today.
   * @throws ArchiveError `archive_unusable`.
   */
  constructor(path: string, policy: Partial<SamePolicy> = {}) {
    this.path = realPath(path);
    this.policy = { sameContent: "skip", weakestRule: "message-id-and-bytes", ...policy };
    this.#database = openDatabase(this.path);
    this.#files = new OpenFiles(this.path, this.#database);
    this.known = new KnownNumbers(this.#database, this.policy.sameContent);
    const copies = this.policy.sameContent === "skip" ? `union all ${SELECT_COPIES_IN}` : "";
    this.#storedIn = this.#database.prepare(`${SELECT_MESSAGES_IN} ${copies}`);
    this.#same = new SameMessages(this.#database, this.policy.weakestRule);
    this.#insert = messageInserter(this.#database);
    this.#insertCopy = this.#database.prepare(INSERT_COPY);
    this.#insertRelation = this.#database.prepare(INSERT_RELATION);
    this.#version = this.#database.prepare("pragma data_version");
  }

  /**
   * As the constructor, for an archive that an import has opened before as `file`: no other one is opened, or made.
   * @throws ArchiveError `archive_replaced`, too.
   */
  static reopen(path: string, file: string | undefined, policy?: Partial<SamePolicy>): Archive {
    if (file === undefined || fileAt(path) !== file) throw replaced(path);
    return new Archive(path, policy);
  }

  /** Which file it is, for `reopen`. */
  get file(): string | undefined {
    return this.#files.main;
  }

  /** Changes when the archive is changed, by whatever process. */
  get version(): string {
    return `${this.#version.get()?.["data_version"]} ${this.#storeCount}`;
  }

  /** Where its call numbers come from; undefined before the first message. */
  get origin(): Origin | undefined {
    const rows = this.#database.prepare("select name, value from facts").all() as { name: string; value: string }[];
    const { store_id: storeId, namespace } = Object.fromEntries(rows.map(({ name, value }) => [name, value]));
    return storeId === undefined || namespace === undefined ? undefined : { storeId, namespace };
  }

  /**
   * Returns the messages of a source, from one byte offset to another one, that are already stored, or listed as a copy; the latter with
   * `skip` only. By `placeKey`.
   * @throws ArchiveError `archive_failed`.
   */
  storedIn(source: string, first: number, last: number): ReadonlyMap<string, Stored> {
    const rows = this.#orAction(() => this.#storedIn.all(this.#nameOf(source), first, last));
    return new Map(rows.map((row) => [row["place"] as string, row as unknown as Stored]));
  }

  /** As `storedIn`, for one message. */
  find(key: MessageKey): Stored | undefined {
    const { source, byteOffset, contentHash } = key;
    return this.storedIn(source, byteOffset, byteOffset).get(placeKey(byteOffset, contentHash));
  }

  findByCallNumber(callNumber: string): StoredMessage | undefined {
    const row = this.#database.prepare(`${SELECT_STORED} where call_number = ?`).get(callNumber);
    return row as StoredMessage | undefined;
  }

  /** Returns a stored message, from whatever place, that is the same as this one. @throws ArchiveError `archive_failed`. */
  findSame(message: NewMessage): Same | undefined {
    return this.#orAction(() => this.#same.find(message));
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
   * Stores each message under the number that it had before, if a file of numbers says so, else under the next of `freshNumbers`; or as a
   * copy; all or none. A message that another process has stored since it was looked up is left out. `beforeCommit` is called with what
   * will be stored: if it throws, nothing is.
   * @throws RangeError when there are fewer numbers than needed; ArchiveError `repeated_call_number` when a number is
   *   already stored; `store_mismatch`, `other_namespace` when the archive's numbers come from elsewhere; `archive_failed`
   *   when SQLite can't write; `archive_replaced` when the file was removed or replaced since it was opened. Nothing is
   *   stored then.
   */
  store(
    messages: readonly NewMessage[],
    freshNumbers: readonly string[],
    origin: Origin,
    lookUp?: LookUp,
    beforeCommit?: (stored: readonly StoredNow[]) => void,
  ): StoreResult {
    return this.#orAction(() =>
      inTransaction(this.#database, () => {
        this.#files.assertInPlace();
        this.#pin(origin);
        const isCurrent = lookUp !== undefined && lookUp.version === this.version;
        const copies = counts(SAME_RULES);
        const relations = counts(RELATIONS);
        const stored: StoredNow[] = [];
        const storedHere = new Set<string>();
        let usedCount = 0;
        for (const message of messages) {
          // Under the lock, so that two imports of one file can't both find it missing.
          if (!isCurrent && this.find(message) !== undefined) continue;
          const keys = [message.messageHash.toString("latin1"), message.messageId ?? ""];
          const isCertain = isCurrent && !keys.some((key) => storedHere.has(key));
          const same = isCertain ? lookUp.same.get(message) : this.findSame(message);
          const known = this.known.find(message, this.policy.weakestRule);
          // A cross-post had a number of its own, also where this import is not given the list.
          const wasOfOtherList = known?.isListGiven === true && known.list !== same?.list;
          if (same !== undefined && !wasOfOtherList) copies[same.why]++;
          if (same !== undefined && !wasOfOtherList && this.policy.sameContent === "skip") {
            this.#storeCopy(message, same);
            continue;
          }
          const callNumber = known?.callNumber ?? freshNumbers[usedCount++];
          if (callNumber === undefined) throw new RangeError(`${freshNumbers.length} numbers are too few`);
          const { list, isListGiven } = message.isListGiven ? message : (known ?? message);
          const relation = this.#insertNew(callNumber, isListGiven ? { ...message, list, isListGiven } : message);
          if (relation !== undefined) relations[relation]++;
          if (known !== undefined) this.known.remove(known.callNumber);
          for (const key of keys) storedHere.add(key);
          stored.push({ callNumber, message, isRestored: known !== undefined });
        }
        if (stored.length > 0) beforeCommit?.(stored);
        this.#storeCount++;
        return { stored, usedCount, copies, relations };
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
        `${failure}.\n${action} If that store is lost, run callnumber explain namespace_lost first.`,
      );
    }
    if (namespace !== undefined && namespace !== pinned.namespace) {
      const failure = `The archive ${this.path} is pinned to the namespace ${pinned.namespace}, not ${namespace}`;
      const action = `Pass --namespace ${pinned.namespace}, or another --archive.`;
      throw new ArchiveError("other_namespace", `${failure}.\n${action}`);
    }
  }

  /**
   * Reads the file of numbers into the archive: which numbers the messages had that are not here. `check` is called before, if there are
   * some, with the greatest of them, and returns where the numbers come from; if it throws, the archive stays as it was.
   */
  async learn(entries: AsyncIterable<NumbersEntry>, check: (greatest: string) => Promise<Origin>): Promise<void> {
    const greatest = await this.known.read(entries);
    const origin = greatest === undefined ? undefined : await check(greatest);
    this.#orAction(() =>
      inTransaction(this.#database, () => {
        if (origin !== undefined) this.#pin(origin);
        this.known.accept();
      }),
    );
  }

  /** Runs `work` while no other process stores anything. */
  whileLocked(work: () => void): void {
    this.#orAction(() => inTransaction(this.#database, work));
  }

  close(): void {
    this.#files.close(this.#database);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** In the transaction of the first message: an archive without messages or known numbers is not pinned yet. */
  #pin(origin: Origin): void {
    if (this.origin !== undefined) return this.assertOrigin(origin);
    const insert = this.#database.prepare("insert into facts (name, value) values (?, ?)");
    insert.run("store_id", origin.storeId);
    insert.run("namespace", origin.namespace);
  }

  #storeCopy({ source, number, byteOffset, contentHash }: NewMessage, { callNumber, why }: Same): void {
    this.#insertCopy.run(this.#nameOf(source), number, byteOffset, contentHash, callNumber, why);
  }

  /** Returns how the message is related to the first one of its Message-ID, if there is one. */
  #insertNew(callNumber: string, message: NewMessage): Relation | undefined {
    const { source, number, messageId } = message;
    const earlier = messageId === null ? undefined : this.#same.earliest(messageId);
    try {
      this.#insert(callNumber, this.#nameOf(source), message);
    } catch (error) {
      if ((error as { errcode?: number }).errcode !== SQLITE_CONSTRAINT_PRIMARYKEY) throw error;
      const stored = this.findByCallNumber(callNumber);
      throw new ArchiveError(
        "repeated_call_number",
        `The call number ${callNumber} of message ${number} of ${source} is already in the archive, as message` +
          ` ${stored?.number} of ${stored?.source}. Nothing was overwritten.\n` +
          "It was issued twice: stop all importers of this namespace and find the cause first (callnumber explain rolled_back).",
        { cause: error },
      );
    }
    if (earlier === undefined) return undefined;
    const kind = relationOf(earlier, message);
    this.#insertRelation.run(callNumber, earlier.callNumber, kind);
    return kind;
  }

  /** The name of a source here; of many messages it is the same one. */
  #nameOf(source: string): string {
    if (this.#lastName?.source !== source) this.#lastName = { source, name: sourceName(this.path, source) };
    return this.#lastName.name;
  }

  /** Adds to an error of SQLite what to do about it; any other error stays as it is. */
  #orAction<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      const { errcode, message } = error as { errcode?: number; message?: string };
      if (errcode === undefined || damage(error) !== undefined) throw error;
      const action = "Free disk space, or close the program that uses the archive";
      const text = `The archive ${this.path} failed: ${message}.\n${action}, then run the same command again.`;
      throw new ArchiveError("archive_failed", text, { cause: error });
    }
  }
}

/** Through whatever links its directory is reached, its sources have one name. */
function realPath(path: string): string {
  const absolute = resolve(path);
  const directory = dirname(absolute);
  return existsSync(directory) ? join(realpathSync(directory), basename(absolute)) : absolute;
}

/** Where a message is in its source, with its digest: other bytes may have come to its place. */
export function placeKey(byteOffset: number, contentHash: Buffer): string {
  return `${byteOffset}${contentHash.toString("hex").toUpperCase()}`;
}

function counts<T extends string>(names: readonly T[]): Record<T, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<T, number>;
}
