/**
 * Numbers of messages that are not in the archive, from a file of numbers: a message that comes back gets the number that it had. They are in
 * the archive's file, so that all processes of an import know them.
 */
import type { DatabaseSyncInstance as Database } from "@photostructure/sqlite";
import type { Identity, SameRule } from "../message/sameness.js";

/** A digest in a file of numbers: the first bytes of a SHA-256. A chance collision would take more messages than there are numbers. */
const SHORT_DIGEST_BYTES = 16;

function shortDigest(digest: Buffer): Buffer {
  return digest.subarray(0, SHORT_DIGEST_BYTES);
}

/** A cross-post has a number in each list. */
const OF_LIST = "(list is null or :list is null or list = :list)";
const PREFERRED = "order by bytes = :bytes desc, list is :list desc, call_number limit 1";

export class KnownNumbers {
  readonly #byMessage;
  readonly #byBody;
  readonly #remove;
  readonly #moveLinks;
  readonly #any;

  constructor(database: Database) {
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
    this.#any = database.prepare("select 1 from known_numbers limit 1");
  }

  get isEmpty(): boolean {
    return this.#any.get() === undefined;
  }

  /** Returns the number that this message had; undefined for a message that is not known. */
  find(message: Identity, weakestRule: SameRule): string | undefined {
    if (this.isEmpty) return undefined;
    const { list, messageId } = message;
    const bytes = shortDigest(message.contentHash);
    const row = this.#byMessage.get({ message: shortDigest(message.messageHash), bytes, list });
    if (row !== undefined || weakestRule !== "message-id-and-body" || messageId === null) return numberIn(row);
    return numberIn(this.#byBody.get({ messageId, body: shortDigest(message.bodyHash), bytes, list }));
  }

  /** When its message is stored, with the old links that it had. */
  remove(callNumber: string): void {
    this.#moveLinks.run(callNumber);
    this.#remove.run(callNumber);
  }
}

function numberIn(row: Record<string, unknown> | undefined): string | undefined {
  return row?.["call_number"] as string | undefined;
}
