/**
 * Numbers of messages that are not in the archive, from a file of numbers: a message that comes back gets the number that it had. They are in
 * the archive's file, so that all processes of an import know them.
 */
import { decodeCallNumber } from "@callnumber/protocol/codec";
import type { DatabaseSyncInstance as Database } from "@photostructure/sqlite";
import type { SameContent } from "../archive/same-messages.js";
import type { Identity, SameRule } from "../message/sameness.js";
import { entryLine, type NumbersEntry, shortDigest } from "./numbers-file.js";

/** A cross-post has a number in each list. */
const OF_LIST = "(is_list_given = 0 or :isListGiven = 0 or list is :list)";
/**
 * Of two numbers of one message, the one that came last into the file: after a kill, the earlier one was never stored. Where each place has a
 * number of its own, they come back in their order.
 */
const preferred = (sameContent: SameContent) =>
  `order by bytes = :bytes desc, list is :list desc, line ${sameContent === "skip" ? "desc" : "asc"} limit 1`;
const SELECT_KNOWN = "select call_number as callNumber, list, is_list_given as isListGiven from known_numbers";

/** What the file says, for the time of one import. */
const SEEN = `create temp table if not exists seen (call_number text collate binary primary key, bytes blob, message blob, body blob,
  message_id text, list text, is_list_given integer, links text, line integer) without rowid;
  delete from seen;`;
const IS_HERE = "call_number in (select call_number from main.messages)";
const IS_KNOWN = "call_number in (select call_number from main.known_numbers)";

/** The number that a message had, and the list that it was given with. */
export interface Known {
  readonly callNumber: string;
  readonly list: string | null;
  readonly isListGiven: boolean;
}

export class KnownNumbers {
  readonly #database;
  readonly #byMessage;
  readonly #byBody;
  readonly #remove;
  readonly #moveLinks;
  #isEmpty: boolean;

  constructor(database: Database, sameContent: SameContent) {
    this.#database = database;
    const ofMessage = `and ${OF_LIST} ${preferred(sameContent)}`;
    this.#byMessage = database.prepare(`${SELECT_KNOWN} where message = :message ${ofMessage}`);
    this.#byBody = database.prepare(`${SELECT_KNOWN} where message_id = :messageId and body = :body ${ofMessage}`);
    this.#remove = database.prepare("delete from known_numbers where call_number = ?");
    this.#moveLinks = database.prepare(
      `insert into old_links (url, call_number) select json_each.value, call_number from known_numbers,
         json_each(known_numbers.links) where call_number = ? on conflict do nothing`,
    );
    this.#isEmpty = this.#isEmptyNow();
  }

  /** Returns the number that this message had; undefined for a message that is not known. */
  find(message: Identity, weakestRule: SameRule): Known | undefined {
    if (this.#isEmpty) return undefined;
    const { list, messageId } = message;
    const place = { bytes: shortDigest(message.contentHash), list, isListGiven: Number(message.isListGiven) };
    const row = this.#byMessage.get({ message: shortDigest(message.messageHash), ...place });
    if (row !== undefined || weakestRule !== "message-id-and-body" || messageId === null) return knownIn(row);
    return knownIn(this.#byBody.get({ messageId, body: shortDigest(message.bodyHash), ...place }));
  }

  /** When its message is stored, with the old links that it had. */
  remove(callNumber: string): void {
    this.#moveLinks.run(callNumber);
    this.#remove.run(callNumber);
  }

  /**
   * Reads the entries of a file, and changes nothing yet. Of two entries of one number the first counts; the second may add links.
   * Returns the greatest number, by version and run, whose message is not here; undefined when there is none.
   */
  async read(entries: AsyncIterable<NumbersEntry>): Promise<string | undefined> {
    this.#database.exec(SEEN);
    const insert = this.#database.prepare(
      `insert into seen values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do update set links = excluded.links
         where excluded.links <> '[]'`,
    );
    let line = 0;
    for await (const { number, bytes, message, body, id, list, isListGiven, old } of entries) {
      const digests = [bytes, message ?? bytes, body].map((text) => Buffer.from(text, "base64url"));
      const links = JSON.stringify(old ?? []);
      insert.run(number, ...digests, id ?? null, list ?? null, Number(isListGiven === true), links, ++line);
    }
    let greatest: { readonly callNumber: string; readonly place: number } | undefined;
    for (const row of this.#database.prepare(`select call_number from seen where not ${IS_HERE}`).iterate()) {
      const callNumber = row["call_number"] as string;
      const place = placeOf(callNumber);
      if (greatest === undefined || place > greatest.place) greatest = { callNumber, place };
    }
    return greatest?.callNumber;
  }

  /** Returns a number of what was read that the archive lacks altogether; undefined when there is none. */
  unknown(): string | undefined {
    const row = this.#database.prepare(`select call_number from seen where not (${IS_HERE} or ${IS_KNOWN})`).get();
    return row?.["call_number"] as string | undefined;
  }

  /** Takes over what was read. In a transaction of the caller. */
  accept(): void {
    this.#database.exec(`insert into known_numbers select * from seen where not ${IS_HERE} on conflict do nothing`);
    this.#isEmpty = this.#isEmptyNow();
  }

  #isEmptyNow(): boolean {
    return this.#database.prepare("select 1 from known_numbers limit 1").get() === undefined;
  }

  /** Yields the numbers of the file that another message has here. */
  *conflicts(): Generator<string, void> {
    const query = `select call_number from seen join messages using (call_number)
      where seen.message <> substr(messages.message_hash, 1, 16)`;
    for (const row of this.#database.prepare(query).iterate()) yield row["call_number"] as string;
  }

  /**
   * Yields messages that were numbered without the file, although it has a number of theirs. A kill leaves an unused number in the file, too,
   * but then the file has the one that the message got.
   */
  *renumbered(): Generator<{ readonly here: string; readonly inFile: string }, void> {
    const query = `select messages.call_number as here, max(seen.call_number) as inFile from messages
      cross join seen on seen.bytes = substr(messages.content_hash, 1, 16)
        and (seen.is_list_given = 0 or messages.is_list_given = 0 or seen.list is messages.list)
      where messages.call_number not in (select call_number from seen) and seen.${IS_HERE.replace(" in ", " not in ")}
      group by here order by messages.rowid`;
    yield* this.#database.prepare(query).iterate() as Iterable<{ readonly here: string; readonly inFile: string }>;
  }

  /**
   * Yields the lines that the file lacks, or whose old links it lacks; all, if no file was read. First those of messages that have not come back
   * yet, so that a number that another one has replaced stays in front of it.
   */
  *missingLines(): Generator<string, void> {
    this.#database.exec(SEEN.replace("delete from seen;", ""));
    const lacking = (table: string, columns: string, links: string, order: string) =>
      `select call_number, ${columns}, ${table}.message_id, ${table}.list, ${table}.is_list_given, ${links} as found
       from ${table} left join seen using (call_number)
       where seen.links is null or json_array_length(seen.links) < json_array_length(found) order by ${table}.${order}`;
    const links = "(select json_group_array(url) from old_links where old_links.call_number = messages.call_number)";
    const digests = "known_numbers.bytes, known_numbers.message, known_numbers.body";
    yield* this.#lines(lacking("known_numbers", digests, "known_numbers.links", "line"));
    const hashes = "content_hash as bytes, message_hash as message, body_hash as body";
    yield* this.#lines(lacking("messages", hashes, links, "rowid"));
  }

  *#lines(query: string): Generator<string, void> {
    for (const row of this.#database.prepare(query).iterate()) {
      const [contentHash, messageHash, bodyHash] = ["bytes", "message", "body"].map((name) =>
        Buffer.from(row[name] as Uint8Array),
      ) as [Buffer, Buffer, Buffer];
      const [messageId, list] = [row["message_id"], row["list"]] as (string | null)[] as [string | null, string | null];
      const identity = { contentHash, messageHash, bodyHash, messageId, list, isListGiven: row["is_list_given"] === 1 };
      yield entryLine(row["call_number"] as string, identity, JSON.parse(row["found"] as string));
    }
  }
}

function knownIn(row: Record<string, unknown> | undefined): Known | undefined {
  return row && ({ ...row, isListGiven: row["isListGiven"] === 1 } as unknown as Known);
}

/** Grows with version and run: what is leased later is greater. */
export function placeOf(callNumber: string): number {
  const { version, run } = decodeCallNumber(callNumber);
  return version * 2 ** 30 + run;
}
