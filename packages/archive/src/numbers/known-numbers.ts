/**
 * Numbers of messages that are not in the archive, from a file of numbers: a message that comes back gets the number that it had. They are in
 * the archive's file, so that all processes of an import know them.
 */
import { decodeCallNumber } from "@callnumber/protocol/codec";
import type { DatabaseSyncInstance as Database } from "@photostructure/sqlite";
import type { Identity, SameRule } from "../message/sameness.js";
import { entryLine, type NumbersEntry, shortDigest } from "./numbers-file.js";

/** A cross-post has a number in each list. */
const OF_LIST = "(is_list_given = 0 or :isListGiven = 0 or list is :list)";
const PREFERRED = "order by bytes = :bytes desc, list is :list desc, call_number limit 1";

/** What the file says, for the time of one import. */
const SEEN = `create temp table if not exists seen (call_number text collate binary primary key, bytes blob, message blob, body blob,
  message_id text, list text, is_list_given integer, links text) without rowid;
  delete from seen;`;
const IS_HERE = "call_number in (select call_number from main.messages)";

export class KnownNumbers {
  readonly #database;
  readonly #byMessage;
  readonly #byBody;
  readonly #remove;
  readonly #moveLinks;
  #isEmpty: boolean;

  constructor(database: Database) {
    this.#database = database;
    this.#byMessage = database.prepare(
      `select call_number from known_numbers where message = :message and ${OF_LIST} ${PREFERRED}`,
    );
    this.#byBody = database.prepare(
      `select call_number from known_numbers where message_id = :messageId and body = :body and ${OF_LIST} ${PREFERRED}`,
    );
    this.#remove = database.prepare("delete from known_numbers where call_number = ?");
    this.#moveLinks = database.prepare(
      `insert into old_links (url, call_number) select json_each.value, call_number from known_numbers,
         json_each(known_numbers.links) where call_number = ? on conflict do nothing`,
    );
    this.#isEmpty = this.#isEmptyNow();
  }

  /** Returns the number that this message had; undefined for a message that is not known. */
  find(message: Identity, weakestRule: SameRule): string | undefined {
    if (this.#isEmpty) return undefined;
    const { list, messageId } = message;
    const place = { bytes: shortDigest(message.contentHash), list, isListGiven: Number(message.isListGiven) };
    const row = this.#byMessage.get({ message: shortDigest(message.messageHash), ...place });
    if (row !== undefined || weakestRule !== "message-id-and-body" || messageId === null) return numberIn(row);
    return numberIn(this.#byBody.get({ messageId, body: shortDigest(message.bodyHash), ...place }));
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
      `insert into seen values (?, ?, ?, ?, ?, ?, ?, ?) on conflict do update set links = excluded.links
         where excluded.links <> '[]'`,
    );
    for await (const { number, bytes, message, body, id, list, isListGiven, old } of entries) {
      const digests = [bytes, message ?? bytes, body].map((text) => Buffer.from(text, "base64url"));
      insert.run(number, ...digests, id ?? null, list ?? null, Number(isListGiven === true), JSON.stringify(old ?? []));
    }
    let greatest: { readonly callNumber: string; readonly place: number } | undefined;
    for (const row of this.#database.prepare(`select call_number from seen where not ${IS_HERE}`).iterate()) {
      const callNumber = row["call_number"] as string;
      const place = placeOf(callNumber);
      if (greatest === undefined || place > greatest.place) greatest = { callNumber, place };
    }
    return greatest?.callNumber;
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

  /** Yields the lines of the messages that the file lacks, or whose old links it lacks; of all messages, if no file was read. */
  *missingLines(): Generator<string, void> {
    this.#database.exec(SEEN.replace("delete from seen;", ""));
    const links = "(select json_group_array(url) from old_links where old_links.call_number = messages.call_number)";
    const query = `select call_number, content_hash, message_hash, body_hash, messages.message_id, messages.list,
      messages.is_list_given, ${links} as found from messages left join seen using (call_number)
      where seen.links is null or json_array_length(seen.links) < json_array_length(found) order by messages.rowid`;
    for (const row of this.#database.prepare(query).iterate()) {
      const [contentHash, messageHash, bodyHash] = ["content_hash", "message_hash", "body_hash"].map((name) =>
        Buffer.from(row[name] as Uint8Array),
      ) as [Buffer, Buffer, Buffer];
      const [messageId, list] = [row["message_id"], row["list"]] as (string | null)[] as [string | null, string | null];
      const identity = { contentHash, messageHash, bodyHash, messageId, list, isListGiven: row["is_list_given"] === 1 };
      yield entryLine(row["call_number"] as string, identity, JSON.parse(row["found"] as string));
    }
  }
}

function numberIn(row: Record<string, unknown> | undefined): string | undefined {
  return row?.["call_number"] as string | undefined;
}

/** Grows with version and run: what is leased later is greater. */
export function placeOf(callNumber: string): number {
  const { version, run } = decodeCallNumber(callNumber);
  return version * 2 ** 30 + run;
}
