/** Reads an archive that other processes may write, and never changes it. Each query is bounded. */
import { type DatabaseSyncInstance as Database, DatabaseSync } from "@photostructure/sqlite";
import { APPLICATION_ID, assertArchiveAt, SCHEMA_VERSION } from "../archive/schema.js";
import { ArchiveError } from "../errors.js";
import type { Threaded } from "./threads.js";

/** What a list of messages shows, and what puts it into threads. */
export interface MessageRow
  extends Threaded,
    Readonly<Record<"subject" | "from" | "to" | "dateHeader" | "list", string | null>> {
  readonly rowid: number;
  readonly callNumber: string;
  readonly thread: string;
}

/** A message of the same Message-ID that is another one. */
export interface Relative extends MessageRow {
  readonly kind: string;
}

/** How many messages a list has in a month, as `2005-03`; null: in no month that is known. */
export interface MonthCount {
  readonly list: string | null;
  readonly month: string | null;
  readonly count: number;
}

export interface ExportedRow {
  readonly callNumber: string;
  readonly fromLine: Buffer | null;
  readonly raw: Buffer;
  readonly date: string | null;
}

const COLUMNS = `messages.rowid, messages.call_number as callNumber, message_id as messageId, subject, from_header as "from",
  to_header as "to", date, date_header as dateHeader, in_reply_to as inReplyTo, references_header as "references", thread, list`;
const SELECT = `select ${COLUMNS} from messages`;
/** Read on each side of a message. */
const THREAD_HALF_MAX = 250;
const RELATIVES_MAX = 20;
const MESSAGE_HASH_BYTES = 32;
/** How far a clock that has the wrong zone is ahead. */
const ZONE_MS_MAX = 14 * 3600 * 1000;

export class ArchiveReader implements Disposable {
  readonly database: Database;
  readonly #has;
  readonly #counts = new Map<string, { list: string | null; month: string | null; count: number }>();
  #countedRowid = 0;

  /** @throws ArchiveError `archive_unusable`. */
  constructor(readonly path: string) {
    this.database = openReadOnly(path);
    this.#has = this.database.prepare("select 1 from messages where call_number = ?");
  }

  has(callNumber: string): boolean {
    return this.#has.get(callNumber) !== undefined;
  }

  find(callNumber: string): MessageRow | undefined {
    return this.#all(`${SELECT} where call_number = ?`, callNumber)[0];
  }

  /** Returns the message of which a file of numbers has this number, and which was imported under another one; undefined for none. */
  findRenumbered(callNumber: string): MessageRow | undefined {
    const known = this.database.prepare("select * from known_numbers where call_number = ?").get(callNumber);
    if (known === undefined) return undefined;
    const first = Buffer.from(known["message"] as Uint8Array);
    const last = Buffer.concat([first, Buffer.alloc(MESSAGE_HASH_BYTES - first.length, 0xff)]);
    // A cross-post has a number in each list.
    const query = `${SELECT} where message_hash between ? and ?
      and (is_list_given = 0 or ? = 0 or list is ?) order by messages.rowid limit 1`;
    return this.#all(query, first, last, Number(known["is_list_given"]), known["list"] as string | null)[0];
  }

  /** Returns the next rows in the order in which they were stored. */
  after(rowid: number, count: number): MessageRow[] {
    return this.#all(`${SELECT} where rowid > ? order by rowid limit ?`, rowid, count);
  }

  /** Returns the latest messages of a list, or of all lists, by date. A date in the future is wrong, and does not count. */
  latest(count: number, list?: string | null): MessageRow[] {
    if (list === undefined) {
      const lists = new Set(this.monthCounts().map((each) => each.list));
      const all = [...lists].flatMap((each) => this.latest(count, each));
      return all.sort((a, b) => Number(timeOf(b) > timeOf(a)) - Number(timeOf(b) < timeOf(a))).slice(0, count);
    }
    const until = new Date(Date.now() + ZONE_MS_MAX).toISOString();
    const query = `${SELECT} where list is ? and (date <= ? or date is null) order by date desc, rowid desc limit ?`;
    return this.#all(query, list, until, count);
  }

  /** Returns messages of a month by date. */
  month(list: string | null, month: string | null, offset: number, count: number): MessageRow[] {
    const inMonth = month === null ? "date is null" : "date >= ? and date < ? || '~'";
    const values = month === null ? [] : [month, month];
    const query = `${SELECT} where list is ? and ${inMonth} order by date, rowid limit ? offset ?`;
    return this.#all(query, list, ...values, count, offset);
  }

  /** Returns the messages of a list before and after one, by date. */
  neighborsOf({ list, date, rowid }: MessageRow) {
    const nearest = (side: string, order: string): MessageRow | undefined => {
      const query = `${SELECT} where list is ? and (date, rowid) ${side} (?, ?) order by date ${order}, rowid ${order} limit 1`;
      return this.#all(query, list, date, rowid)[0];
    };
    return { previous: nearest("<", "desc"), next: nearest(">", "asc") };
  }

  /** Returns the messages of a thread; of a long one those before and after this message. */
  threadOf({ thread, rowid }: MessageRow): MessageRow[] {
    const before = `${SELECT} where thread = ?1 and rowid < ?2 order by rowid desc limit ${THREAD_HALF_MAX}`;
    const after = `${SELECT} where thread = ?1 and rowid >= ?2 order by rowid limit ${THREAD_HALF_MAX}`;
    return this.#all(`select * from (${before}) union all select * from (${after})`, thread, rowid);
  }

  relativesOf({ callNumber, messageId }: MessageRow): Relative[] {
    const later = "relations.call_number = messages.call_number and relations.other = ?1";
    const earlier = "relations.other = messages.call_number and relations.call_number = ?1";
    // All have this Message-ID, for which there is an index.
    const query = `select ${COLUMNS}, kind from messages join relations on (${later}) or (${earlier}) where message_id = ?2`;
    return this.#all(`${query} order by date limit ${RELATIVES_MAX}`, callNumber, messageId) as Relative[];
  }

  /** Returns how many messages each list has in each month; reads only what is new since the last call. */
  monthCounts(): readonly MonthCount[] {
    const last = Number(this.database.prepare("select max(rowid) as n from messages").get()?.["n"] ?? 0);
    if (last > this.#countedRowid) {
      // The plus sign makes SQLite read the index of lists and dates alone, where everything is new.
      const rows = `${this.#countedRowid === 0 ? "+" : ""}rowid > ? and +rowid <= ?`;
      const query = `select list, substr(date, 1, 7) as month, count(*) as count from messages where ${rows} group by 1, 2`;
      for (const row of this.database.prepare(query).iterate(this.#countedRowid, last)) {
        const { list, month, count } = row as unknown as MonthCount;
        const key = JSON.stringify([list, month]);
        this.#counts.set(key, { list, month, count: count + (this.#counts.get(key)?.count ?? 0) });
      }
      this.#countedRowid = last;
    }
    return [...this.#counts.values()];
  }

  byteCount(callNumber: string): number {
    const row = this.database.prepare("select length(raw) as n from messages where call_number = ?").get(callNumber);
    return Number(row?.["n"] ?? 0);
  }

  /** Returns bytes of a message; none past its end. */
  raw(callNumber: string, offset = 0, byteCount = 2 ** 31 - 1): Buffer {
    const query = "select substr(raw, ?, ?) as bytes from messages where call_number = ?";
    const { bytes } = this.database.prepare(query).get(offset + 1, byteCount, callNumber) as { bytes: Uint8Array };
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Yields whole messages as they were stored: all, those of a list, or those of call numbers in their order. */
  *exported(callNumbers: readonly string[], list: string | undefined): Generator<ExportedRow> {
    const select = "select call_number as callNumber, from_line as fromLine, raw, date from messages";
    const where = callNumbers.length > 0 ? "where call_number = ?" : list === undefined ? "" : "where list = ?";
    const rows = this.database.prepare(`${select} ${where} order by rowid`);
    const values = callNumbers.length > 0 ? callNumbers.map((each) => [each]) : [list === undefined ? [] : [list]];
    for (const value of values) {
      for (const row of rows.iterate(...value)) {
        const { fromLine, raw, ...others } = row as unknown as ExportedRow;
        yield { ...others, fromLine: fromLine && Buffer.from(fromLine), raw: Buffer.from(raw) };
      }
    }
  }

  fact(name: string): string | undefined {
    return this.database.prepare("select value from facts where name = ?").get(name)?.["value"] as string | undefined;
  }

  [Symbol.dispose](): void {
    this.database.close();
  }

  #all(query: string, ...values: readonly (string | number | Buffer | null)[]): MessageRow[] {
    return this.database.prepare(query).all(...values) as unknown as MessageRow[];
  }
}

const timeOf = ({ date }: MessageRow) => date ?? "";

const SQLITE_READONLY = 8;
const NEEDS_WRITING =
  "SQLite keeps files next to it: serve it as a user who may write in its directory, or copy it to one.";
const USE_AN_ARCHIVE = "Pass --archive the path of an archive; an import brings an older one to the tables of today.";

function openReadOnly(path: string): Database {
  let database: Database | undefined;
  assertArchiveAt(path);
  try {
    database = new DatabaseSync(path, { readOnly: true, timeout: 10_000 });
    const [applicationId, version] = ["application_id", "user_version"].map((name) =>
      Number(database?.prepare(`pragma ${name}`).get()?.[name]),
    );
    if (applicationId !== APPLICATION_ID) throw new Error("it is a database of another program");
    if (version !== SCHEMA_VERSION) throw new Error(`its tables are of version ${version}, not ${SCHEMA_VERSION}`);
    return database;
  } catch (error) {
    database?.close();
    const { message: cause, errcode } = error as Error & { errcode?: number };
    const action = ((errcode ?? 0) & 0xff) === SQLITE_READONLY ? NEEDS_WRITING : USE_AN_ARCHIVE;
    const message = `The archive ${path} can't be read: ${cause}. ${action}`;
    throw new ArchiveError("archive_unusable", message, { cause: error });
  }
}
