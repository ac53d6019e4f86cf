/** Links that follow from a Message-ID: those of HyperKitty and public-inbox, and those of a CSV of one's own. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { DatabaseSyncInstance as Database } from "@photostructure/sqlite";
import type { Found, OldArchive } from "./old-links.js";

/** A Message-ID without angle brackets, and without the blanks of a folded header. */
export function bare(messageId: string): string {
  return messageId.replace(/\s/g, "").replace(/^<(.*)>$/, "$1");
}

/** RFC 4648. */
const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/** HyperKitty cuts a longer Message-ID to fit its column, and hashes what is left. */
const HYPERKITTY_ID_LENGTH_MAX = 254;

/** Returns HyperKitty's name of a message: the SHA-1 of its bare Message-ID in base32. */
export function hyperkittyHash(messageId: string): string {
  const characters = [...bare(messageId)].slice(0, HYPERKITTY_ID_LENGTH_MAX);
  const sha1 = createHash("sha1").update(characters.join("")).digest("hex");
  const digits = BigInt(`0x${sha1}`).toString(32).padStart(32, "0");
  return digits.replace(/./g, (digit) => BASE32.charAt(Number.parseInt(digit, 32)));
}

/** Yields links of HyperKitty, whose `url` is `/hyperkitty/list/garden@example.org/`. A thread has the hash of its first message. */
export function* hyperkittyLinks(database: Database, { url, list }: OldArchive): Generator<Found, void> {
  for (const { messageId, callNumber, thread, count } of firstMessages(database, list)) {
    const hash = hyperkittyHash(messageId);
    yield { url: `${url}message/${hash}/`, callNumber };
    if (thread === messageId) yield { url: `${url}thread/${hash}/`, callNumber };
    if (count > 1) yield firstOf(count, messageId, callNumber);
  }
}

/** Yields links of public-inbox, whose `url` is `/garden/`. Only maps need them: a reader finds the message by its Message-ID. */
export function* publicInboxLinks(database: Database, { url, list }: OldArchive): Generator<Found, void> {
  for (const { messageId, callNumber, count } of firstMessages(database, list)) {
    const id = messageId.replace(/^<(.*)>$/s, "$1").replace(/[%?#]/g, encodeURIComponent);
    yield { url: `${url}${id}/`, callNumber };
    if (count > 1) yield firstOf(count, messageId, callNumber);
  }
}

interface FirstMessage {
  readonly messageId: string;
  readonly callNumber: string;
  readonly thread: string;
  readonly count: number;
}

/** The first stored message of each Message-ID, of a list or of all. The columns are those of the row that min() finds. */
function firstMessages(database: Database, list: string | undefined): Iterable<FirstMessage> {
  const query = `select message_id as messageId, call_number as callNumber, thread, count(*) as count, min(rowid) from messages
    where message_id is not null and (:list is null or list = :list) group by message_id`;
  return database.prepare(query).iterate({ list: list ?? null }) as Iterable<never>;
}

function firstOf(count: number, messageId: string, callNumber: string): Found {
  return { note: `${messageId} is the Message-ID of ${count} messages: its links lead to the first, ${callNumber}` };
}

/** The last field is a call number or a Message-ID. */
const CSV_LINE = /^\s*"?(.*?)"?\s*,\s*"?([^,"]*?)"?\s*$/;

/** Yields the links of a CSV: `old URL,call number or Message-ID`. A first line without a URL is its heading. */
export function* csvLinks(database: Database, { path }: OldArchive): Generator<Found, void> {
  const query = "select call_number as callNumber, count(*) as count, min(rowid) from messages where";
  const byNumber = database.prepare(`${query} call_number = ? having count > 0`);
  const byId = database.prepare(`${query} message_id = ? having count > 0`);
  for (const [index, line] of readFileSync(path, "utf8")
    .replace(/^\ufeff/, "")
    .split("\n")
    .entries()) {
    const [, url = "", target = ""] = CSV_LINE.exec(line) ?? [];
    const isUrl = /^(?:\/|https?:\/\/)/i.test(url);
    if (line.trim() === "" || (index === 0 && !isUrl)) continue;
    const row = byNumber.get(target) ?? byId.get(`<${bare(target)}>`) ?? byId.get(target);
    const { callNumber, count } = (row ?? {}) as Partial<FirstMessage>;
    if (!isUrl) yield { problem: `line ${index + 1} of ${path} does not begin with a URL or a path` };
    else if (callNumber === undefined) yield { problem: `${url}: the archive has no message ${target}` };
    else yield { url, callNumber };
    if (callNumber !== undefined && count !== undefined && count > 1) yield firstOf(count, target, callNumber);
  }
}
