/** How a message becomes a row, with the thread that it belongs to. */
import type { DatabaseSyncInstance as Database } from "@photostructure/sqlite";
import type { MessageFields } from "../message/parse-message.js";
import type { Identity } from "../message/sameness.js";

/** Identifies a message of a source. */
export interface MessageKey {
  /** Absolute. */
  readonly source: string;
  readonly byteOffset: number;
  /** SHA-256 of `raw`. */
  readonly contentHash: Buffer;
}

export interface NewMessage extends MessageKey, Identity, Omit<MessageFields, "listId"> {
  readonly number: number;
  readonly raw: Buffer;
}

/** Plain INSERT: no OR IGNORE, no OR REPLACE, no upsert. This is what turns a repeated number into an error. */
const INSERT = `insert into messages (call_number, message_id, subject, from_header, to_header, date, date_header, in_reply_to,
  references_header, thread, list, is_list_given, from_line, raw, source, number, byte_offset, content_hash, message_hash,
  body_hash, problem) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** A larger part of a thread stays a thread of its own, so that forged references cost little. */
const JOINED_COUNT_MAX = 1000;

/** Returns a function that stores a message; `source` is the name that its place has in the archive. */
export function messageInserter(database: Database) {
  const insert = database.prepare(INSERT);
  const threadWith = database.prepare("select thread from messages where message_id = ? limit 1");
  const countIn = database.prepare("select count(*) as n from (select 1 from messages where thread = ? limit ?)");
  const join = database.prepare("update messages set thread = ? where thread = ?");

  /** The thread of the message that it answers, if that is here; else the first one that it names, or the message itself. */
  const threadOf = ({ inReplyTo, references, messageId }: NewMessage, callNumber: string): string => {
    const named = references?.split(" ") ?? [];
    const [first, last] = [named[0], named.at(-1)];
    for (const id of new Set([inReplyTo, last, first])) {
      const found = id === null || id === undefined ? undefined : threadWith.get(id);
      if (found !== undefined) return found["thread"] as string;
    }
    return first ?? inReplyTo ?? messageId ?? callNumber;
  };

  return (callNumber: string, source: string, message: NewMessage): void => {
    const { messageId, subject, from, to, date, dateHeader, inReplyTo, references, list, isListGiven } = message;
    const { fromLine, raw, number, byteOffset, contentHash, messageHash, bodyHash, problem } = message;
    const thread = threadOf(message, callNumber);
    const texts = [messageId, subject, from, to, date, dateHeader, inReplyTo, references, thread, list].map(storable);
    const place = [source, number, byteOffset] as const;
    const digests = [contentHash, messageHash, bodyHash] as const;
    insert.run(callNumber, ...texts, Number(isListGiven), fromLine, raw, ...place, ...digests, storable(problem));
    // Answers to it that came earlier named it as their thread.
    if (messageId === null || thread === messageId) return;
    const count = Number(countIn.get(messageId, JOINED_COUNT_MAX + 1)?.["n"]);
    if (count > 0 && count <= JOINED_COUNT_MAX) join.run(thread, messageId);
  };
}

/** For many programs a text in SQLite ends at its first NUL: two Message-IDs that differ after it would look the same. */
function storable(text: string | null): string | null {
  return text?.includes("\0") ? text.replaceAll("\0", "␀") : text;
}
