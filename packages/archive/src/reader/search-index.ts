/**
 * The words of an archive, for the search: a cache in a file of its own, which is made again when it is missing or belongs to another
 * archive. It is filled in small transactions while the server runs.
 */
import { rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { type DatabaseSyncInstance as Database, DatabaseSync } from "@photostructure/sqlite";
import type { ArchiveReader, MessageRow } from "./archive-reader.js";
import { visibleLine } from "./text.js";

export interface Hit {
  readonly callNumber: string;
  /** To go on behind this hit. */
  readonly place: number;
  /** Of the text; what was searched for is between `MARK_START` and `MARK_END`. */
  readonly snippet: string;
}

interface Indexed {
  readonly row: MessageRow;
  readonly text: string;
}

export const MARK_START = "\u0001";
export const MARK_END = "\u0002";
const FORMAT = "1";
const BATCH_SIZE = 50;
const POLL_INTERVAL_MS = 1_000;
const WORDS_MAX = 16;
/**
 * A row's id has the day in front of the id of the archive's row: SQLite returns the newest hits first without sorting all of them.
 * Days count from 1900.
 */
const ROWID_COUNT = 2 ** 31;
const DAY_MS = 86_400_000;
/** SQLITE_CORRUPT and SQLITE_NOTADB. */
const UNUSABLE = new Set([11, 26]);
const FIRST_DAY = Date.UTC(1900, 0, 1) / DAY_MS;

const SCHEMA = `pragma journal_mode = wal; pragma synchronous = off;
  create table if not exists facts (name text primary key, value) without rowid;
  create virtual table if not exists words using fts5(subject, sender, list, body, call_number unindexed,
    tokenize = 'porter unicode61 remove_diacritics 2');`;

export class SearchIndex implements Disposable {
  readonly #archive: ArchiveReader;
  readonly #database: Database;

  /** Keeps the file at `path` only if it is an index of this archive. */
  constructor(archive: ArchiveReader, path = `${archive.path}.search`) {
    this.#archive = archive;
    const kept = openIndex(path);
    if (kept !== undefined && isIndexOf(kept, archive)) {
      this.#database = kept;
      return;
    }
    kept?.close();
    for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
    this.#database = openIndex(path) as Database;
  }

  /** Of all messages, 0 to 1. */
  get share(): number {
    const last = Number(this.#archive.database.prepare("select max(rowid) as n from messages").get()?.["n"] ?? 0);
    return last === 0 ? 1 : Math.min(1, this.#position / last);
  }

  /** Returns the newest messages with all words, of all lists or of one, at most `count`, those behind `place`. */
  search(query: string, count: number, place = Number.MAX_SAFE_INTEGER, list?: string): readonly Hit[] {
    const words = matchOf(query);
    if (words === "") return [];
    const match = list === undefined ? words : `(${words}) AND list : "${list.replace(/[\0"]/g, " ")}"`;
    const snippet = `snippet(words, 3, '${MARK_START}', '${MARK_END}', '…', 32)`;
    const select = `select call_number as callNumber, rowid as place, ${snippet} as snippet from words`;
    const rows = this.#database.prepare(`${select} where words match ? and rowid < ? order by rowid desc limit ?`);
    return rows.all(match, place, count) as unknown as Hit[];
  }

  /** Returns the beginning of a message's text; empty when it is not indexed yet. */
  beginOf(row: MessageRow, length: number): string {
    const found = this.#database.prepare("select substr(body, 1, ?) as text from words where rowid = ?");
    return String(found.get(length, placeOf(row))?.["text"] ?? "");
  }

  /** Indexes what is in the archive, then what arrives. `textOf` resolves to the text of a message, and never rejects. */
  async fill(textOf: (callNumber: string) => Promise<string>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const position = this.#position;
      const rows = this.#archive.after(position, BATCH_SIZE);
      const indexed: Indexed[] = [];
      for (const row of rows) {
        if (signal.aborted) return;
        indexed.push({ row, text: await textOf(row.callNumber) });
      }
      if (rows.length > 0) this.#store(position, indexed);
      if (rows.length < BATCH_SIZE) await delay(POLL_INTERVAL_MS, undefined, { signal }).catch(() => {});
    }
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }

  get #position(): number {
    return Number(factOf(this.#database, "position") ?? 0);
  }

  /** Nothing when another process was faster. */
  #store(position: number, indexed: readonly Indexed[]): void {
    this.#database.exec("begin immediate");
    try {
      if (this.#position === position) {
        const columns = "rowid, subject, sender, list, body, call_number";
        const insert = this.#database.prepare(`insert into words (${columns}) values (?, ?, ?, ?, ?, ?)`);
        // FTS5 writes all it holds to the disk when an id is below the last one.
        for (const { row, text } of indexed.toSorted((a, b) => placeOf(a.row) - placeOf(b.row))) {
          const [subject, sender] = [visibleLine(row.subject), visibleLine(row.from)];
          insert.run(placeOf(row), subject, sender, row.list ?? "", text, row.callNumber);
        }
        const { rowid, callNumber } = (indexed.at(-1) as Indexed).row;
        const facts = this.#database.prepare("insert or replace into facts values (?, ?)");
        for (const fact of Object.entries({ ...identityOf(this.#archive), position: rowid, callNumber }))
          facts.run(...fact);
      }
      this.#database.exec("commit");
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec("rollback");
      throw error;
    }
  }
}

/** Returns undefined for a file that is no database, or a damaged one. */
function openIndex(path: string): Database | undefined {
  const database = new DatabaseSync(path, { timeout: 10_000 });
  try {
    database.exec(SCHEMA);
    return database;
  } catch (error) {
    database.close();
    if (UNUSABLE.has(((error as { errcode?: number }).errcode ?? 0) & 0xff)) return undefined;
    throw error;
  }
}

/** Whether it is of this format and archive, and its last message is there at this place. */
function isIndexOf(database: Database, archive: ArchiveReader): boolean {
  const position = Number(factOf(database, "position") ?? 0);
  const isOfArchive = Object.entries(identityOf(archive)).every(([name, value]) => factOf(database, name) === value);
  return (
    position === 0 || (isOfArchive && archive.after(position - 1, 1)[0]?.callNumber === factOf(database, "callNumber"))
  );
}

function identityOf(archive: ArchiveReader) {
  return { format: FORMAT, storeId: archive.fact("store_id") ?? "" };
}

function factOf(database: Database, name: string): unknown {
  return database.prepare("select value from facts where name = ?").get(name)?.["value"];
}

function placeOf({ date, rowid }: MessageRow): number {
  const day = date === null ? 0 : Math.max(0, Math.floor(Date.parse(date) / DAY_MS) - FIRST_DAY);
  return day * ROWID_COUNT + rowid;
}

const TERM = /(?:(from|subject|list):)?(?:"([^"]*)"|(\S+))/g;
const COLUMNS: Readonly<Record<string, string>> = { from: "sender : ", subject: "subject : ", list: "list : " };

/** Returns an expression of FTS5 in which nothing that was typed is an operator: words, "phrases", from:…, subject:… and list:…. */
function matchOf(query: string): string {
  const terms = [...query.matchAll(TERM)].map(([, column = "", quoted, word = ""]) => {
    const text = (quoted ?? word).replace(/["\0]/g, " ");
    return /[\p{L}\p{N}]/u.test(text) ? `${COLUMNS[column] ?? ""}"${text}"` : "";
  });
  return terms.slice(0, WORDS_MAX).join(" ").trim();
}
