/**
 * What "the same message" is. A message comes back as a maildir, with CRLF, with the marks of a mail reader, from an archive that was made
 * again: it is the same one, and keeps its number. Pure: knows bytes and nothing of files or databases.
 *
 * Message-IDs alone never make two messages one, because they repeat and are forged. A message that is taken for a copy of another one is
 * not stored, so by default only those rules count by which nothing is lost but what stores and readers add.
 */
import { hash } from "node:crypto";

/**
 * The rules, the strongest first. `separator-and-bytes`: the separator line and every byte are equal · `bytes`: every byte of the message ·
 * `message-id-and-bytes`: all that its sender wrote; only fields that stores and readers add, line ends, quoted `From ` lines or blank lines
 * at its end differ · `message-id-and-body`: the Message-ID and the body; other fields differ, which a copy does not keep.
 */
export const SAME_RULES = ["separator-and-bytes", "bytes", "message-id-and-bytes", "message-id-and-body"] as const;
export type SameRule = (typeof SAME_RULES)[number];

/**
 * How a message is related to an earlier one of the same Message-ID. `cross-posted`: the same text on another list · `redelivered`: the same
 * body with another header · `footer-added`: the text of one begins with the text of the other · `other-content`: a Message-ID used twice.
 */
export const RELATIONS = ["cross-posted", "redelivered", "footer-added", "other-content"] as const;
export type Relation = (typeof RELATIONS)[number];

/** SHA-256 of a message: of its bytes, of what its sender wrote, and of the body alone. */
export interface Digests {
  readonly contentHash: Buffer;
  readonly messageHash: Buffer;
  readonly bodyHash: Buffer;
}

export interface Identity extends Digests {
  readonly messageId: string | null;
  /** The separator line of an mbox. */
  readonly fromLine: Buffer | null;
  /** The list it belongs to. */
  readonly list: string | null;
  /** Whether the importer was given the list's name; else it is what the message says. */
  readonly isListGiven: boolean;
}

/** Returns the strongest rule by which two messages are the same one; undefined when there is none. */
export function sameRule(one: Identity, other: Identity): SameRule | undefined {
  // A cross-post is a message of each list, even where an archive keeps equal bytes of both.
  const areListsOther = one.list !== null && other.list !== null && one.list !== other.list;
  if (areListsOther && one.isListGiven && other.isListGiven) return undefined;
  if (one.contentHash.equals(other.contentHash)) {
    return isEqual(one.fromLine, other.fromLine) ? "separator-and-bytes" : "bytes";
  }
  if (one.messageHash.equals(other.messageHash)) return "message-id-and-bytes";
  if (areListsOther || one.messageId === null || one.messageId !== other.messageId) return undefined;
  return one.bodyHash.equals(other.bodyHash) ? "message-id-and-body" : undefined;
}

function isEqual(one: Buffer | null, other: Buffer | null): boolean {
  return one === null || other === null ? one === other : one.equals(other);
}

/** Returns how two messages of one Message-ID, which are not the same one, are related. */
export function relationOf(one: Related, other: Related): Relation {
  const texts = [one, other].map(({ raw }) => trimEnd(bodyOf(raw).subarray(0, COMPARED_BYTES_MAX)));
  const [short, long] = texts.sort((a, b) => a.length - b.length) as [Buffer, Buffer];
  const isBegin = long.subarray(0, short.length).equals(short);
  const isEqual = isBegin && short.length === long.length;
  // A message without any text is no begin of another one.
  if (!isBegin || (short.length === 0 && !isEqual)) return "other-content";
  if (one.list !== null && other.list !== null && one.list !== other.list) return "cross-posted";
  return isEqual ? "redelivered" : "footer-added";
}

type Related = Pick<Identity, "list"> & { readonly raw: Buffer };

/** A longer text is compared by its beginning: all of it may be a gigabyte. */
const COMPARED_BYTES_MAX = 1024 * 1024;

/**
 * Returns the digests of a message.
 *
 * `messageHash` is that of its canonical form: without the fields that stores and readers add, each line with `\n` at its end, each `>`
 * removed before `From ` at the begin of a line, and one newline at the end. Most messages have this form already.
 */
export function digestsOf(raw: Buffer, contentHash = sha256(raw)): Digests {
  const body = bodyOf(raw);
  const rawHeader = raw.subarray(0, startOfBody(raw));
  const header = canonicalHeader(rawHeader, body.length === 0);
  const bytes = header.length + body.length;
  const isCanonical = header === rawHeader && bytes === raw.length && raw.subarray(header.length).equals(body);
  const messageHash = isCanonical ? contentHash : sha256(Buffer.concat([header, body]));
  return { contentHash, messageHash, bodyHash: sha256(body) };
}

export function sha256(raw: Buffer): Buffer {
  return hash("sha256", raw, "buffer");
}

/**
 * Fields that say how a copy is kept or read, and nothing of the message: of mbox stores and readers (Status, X-Status, X-Keywords, X-UID,
 * X-IMAP, X-IMAPbase, X-Label, Lines, Content-Length), of Thunderbird (X-Mozilla-*), of Gmail's export (X-GM-THRID, X-Gmail-Labels), and of
 * this archive: Archived-At only if its value ends in a call number, since lists add the field, too.
 */
const ADDED_FIELD =
  /(?:^|\n)(?:(?:x-)?status|x-keywords|x-uid|x-imap|x-imapbase|x-label|lines|content-length|x-mozilla-[\w-]+|x-gm-thrid|x-gmail-labels|x-call-number|archived-at(?=[ \t]*:\s*<?[^\s<>]*\/message\/[0-9A-Za-z]{8}>?\s*(?:$|\n)))[ \t]*:/i;
/** A longer header stays as it is. */
const HEADER_BYTES_MAX = 1024 * 1024;

/** Of a message without a body, the blank line is no part of it: a store may leave it out. */
function canonicalHeader(header: Buffer, isAlone: boolean): Buffer {
  const plain = unquoted(header);
  const text = plain.length > HEADER_BYTES_MAX ? "" : plain.toString("latin1");
  const stripped = ADDED_FIELD.test(text) ? Buffer.from(withoutAddedFields(text), "latin1") : plain;
  return isAlone ? withOneNewline(stripped) : stripped;
}

function withoutAddedFields(text: string): string {
  // Each field with its folded lines; the blank line at the end stays.
  const fields = text.match(/[^\n]*\n(?:[ \t][^\n]*\n)*|[^\n]+$/g) ?? [];
  return fields.filter((field) => !ADDED_FIELD.test(field)).join("");
}

/** The canonical body. */
function bodyOf(raw: Buffer): Buffer {
  return withOneNewline(unquoted(raw.subarray(startOfBody(raw))));
}

const NUL = 0x00;
const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const QUOTE = 0x3e;
const FROM_ = Buffer.from("From ");
const QUOTED_FROM = Buffer.from(">From ");

/** Without carriage returns and quotes; the bytes themselves if there are none. */
function unquoted(bytes: Buffer): Buffer {
  return bytes.includes(CARRIAGE_RETURN) || bytes.includes(QUOTED_FROM) ? withoutQuotes(bytes) : bytes;
}

/** Without the carriage return at the end of a line, and the `>` before a `From ` at its begin. */
function withoutQuotes(bytes: Buffer): Buffer {
  const result = Buffer.allocUnsafe(bytes.length);
  let length = 0;
  let nul = bytes.indexOf(NUL);
  for (let start = 0; start < bytes.length; ) {
    const newline = bytes.indexOf(NEWLINE, start);
    if (nul >= 0 && nul < start) nul = bytes.indexOf(NUL, start);
    const lineEnd = newline < 0 ? bytes.length : newline + 1;
    // Behind a NUL a separator may begin, too, and is quoted.
    const next = nul >= 0 && nul < lineEnd ? nul + 1 : lineEnd;
    let begin = start;
    while (bytes[begin] === QUOTE) begin++;
    if (!bytes.subarray(begin, begin + FROM_.length).equals(FROM_)) begin = start;
    const isCrlf = next === lineEnd && newline > begin && bytes[newline - 1] === CARRIAGE_RETURN;
    length += bytes.copy(result, length, begin, isCrlf ? newline - 1 : next);
    if (isCrlf) result[length++] = NEWLINE;
    start = next;
  }
  return result.subarray(0, length);
}

function withOneNewline(bytes: Buffer): Buffer {
  const { length } = trimEnd(bytes);
  if (length === 0 || bytes[length] === NEWLINE) return bytes.subarray(0, length === 0 ? 0 : length + 1);
  return Buffer.concat([bytes, Buffer.from("\n")]);
}

function trimEnd(bytes: Buffer): Buffer {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === NEWLINE) end--;
  return bytes.subarray(0, end);
}

/** Where the body begins: behind the first blank line, or at the end. */
function startOfBody(raw: Buffer): number {
  for (let start = 0; start < raw.length; ) {
    const newline = raw.indexOf(NEWLINE, start);
    if (newline < 0) return raw.length;
    if (newline === start || (newline === start + 1 && raw[start] === CARRIAGE_RETURN)) return newline + 1;
    start = newline + 1;
  }
  return raw.length;
}
