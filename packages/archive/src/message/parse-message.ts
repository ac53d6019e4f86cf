/**
 * Parses the header of a message into the fields that an archive keeps. Knows neither where the bytes come from nor where
 * the fields go. Never throws: what can't be read is reported. The body is stored as it is and never parsed, so that no
 * message, however it nests its parts, can make the importer run out of memory.
 */
import { isUtf8 } from "node:buffer";
import { type Address, addressParser, decodeWords } from "postal-mime";

export interface MessageFields {
  /** The header's text, only trimmed: two Message-IDs that differ stay different. Null when absent or empty. */
  readonly messageId: string | null;
  readonly subject: string | null;
  readonly from: string | null;
  /** All fields To, decoded. */
  readonly to: string | null;
  /** ISO 8601, UTC; null when the header is absent or can't be read. */
  readonly date: string | null;
  /** The header's text. */
  readonly dateHeader: string | null;
  /** The first Message-ID in In-Reply-To. */
  readonly inReplyTo: string | null;
  /** The Message-IDs in References, with a blank between them: the first, and the last of very many. */
  readonly references: string | null;
  /** The id in List-Id, in lower case. */
  readonly listId: string | null;
  /** What could not be read, for people; null when nothing is wrong. A missing Message-ID is common and no problem. */
  readonly problem: string | null;
}

/** Where a header without an end is cut. The parser of addresses needs 2 s for a single address list of this size. */
export const HEADER_BYTES_MAX = 512 * 1024;
const QUOTED_LENGTH_MAX = 60;
const TO_LENGTH_MAX = 2000;
/** Of a field that comes many times. */
const SAME_FIELD_COUNT_MAX = 100;
const LIST_ID_LENGTH_MAX = 255;
const REFERENCE_COUNT_MAX = 50;

export function parseMessage(raw: Buffer): MessageFields {
  const lines = headerLines(raw);
  const values = fieldValues(lines);
  const text = (name: FieldName) => values.get(name)?.[0] || null;
  const decoded = (name: FieldName) => (values.has(name) ? decodeWords(text(name) ?? "") : null);
  const dateHeader = text("date");
  const date = plausibleDate(dateHeader);
  const problems = [headerProblem(raw, lines)];
  if (dateHeader !== null && date === null) problems.push(`its date can't be read: ${quoted(dateHeader)}`);
  if ((Number.parseInt(text("x-mozilla-status") ?? "", 16) & 0x0008) !== 0) {
    problems.push("it was deleted in Thunderbird, and waits for the folder to be compacted");
  }
  const messageId = text("message-id");
  return {
    // `<>` identifies nothing.
    messageId: messageId === "<>" ? null : messageId,
    subject: decoded("subject"),
    from: addressText(text("from") ?? text(">from")),
    to: values.get("to")?.map(decodeWords).join(", ").slice(0, TO_LENGTH_MAX) || null,
    date,
    dateHeader,
    inReplyTo: messageIdsIn(text("in-reply-to"))[0] ?? null,
    references: messageIdsIn(text("references")).join(" ") || null,
    listId: listIdIn(text("list-id")),
    problem: joinProblems(problems),
  };
}

const FIELD_NAMES = [
  "message-id",
  "subject",
  "from",
  // What quotes the lines of a header, too, makes this of it.
  ">from",
  "to",
  "date",
  "in-reply-to",
  "references",
  "list-id",
  "x-mozilla-status",
] as const;
type FieldName = (typeof FIELD_NAMES)[number];
const WANTED_FIELD = new RegExp(`^(${FIELD_NAMES.join("|")})[ \\t]*:`, "i");

/** The values of the fields that are kept, unfolded; of one that comes again, each. */
function fieldValues(lines: readonly string[]): Map<FieldName, string[]> {
  const values = new Map<FieldName, string[]>();
  for (let start = 0, end = 1; start < lines.length; start = end, end++) {
    while (end < lines.length && isFolded(lines[end] as string)) end++;
    const found = WANTED_FIELD.exec(lines[start] as string);
    if (found === null) continue;
    const name = (found[1] as string).toLowerCase() as FieldName;
    // A bare CR in a value would begin a line where it is printed.
    const unfolded = lines.slice(start, end).join("").slice(found[0].length).replaceAll("\r", " ");
    const before = values.get(name);
    if (before === undefined) values.set(name, [unfolded.trim()]);
    else if (before.length < SAME_FIELD_COUNT_MAX) before.push(unfolded.trim());
  }
  return values;
}

/** Bounded in number: the first is the thread's, the last are the nearest. */
function messageIdsIn(text: string | null): string[] {
  const ids = text?.match(/<[^<>\s]+>/g) ?? [];
  return ids.length <= REFERENCE_COUNT_MAX ? ids : [ids[0] as string, ...ids.slice(1 - REFERENCE_COUNT_MAX)];
}

function listIdIn(text: string | null): string | null {
  const id = (/<([^<>]+)>\s*$/.exec(text ?? "")?.[1] ?? text ?? "").trim().toLowerCase();
  // Of the others no page could have an address.
  return /^\.{0,2}$/.test(id) || id.length > LIST_ID_LENGTH_MAX ? null : id;
}

/** RFC 5322: a field's name is printable US-ASCII without a colon. Blanks before the colon are obsolete, and common. */
const FIELD = /^[\x21-\x39\x3b-\x7e]+[ \t]*:/;
/** Longer names exist only in what is not a header. */
const FIELD_NAME_LENGTH_MAX = 1000;

export function beginsWithHeaderField(bytes: Buffer): boolean {
  return FIELD.test(bytes.toString("latin1", 0, FIELD_NAME_LENGTH_MAX));
}

/** The fields of RFC 5322 that a message has at least one of: Date and From are required, but old mail lacks them. */
const MESSAGE_FIELD =
  /^(?:(?:resent-)?(?:date|from|sender|reply-to|to|cc|bcc|message-id)|in-reply-to|references|subject|return-path|received)[ \t]*:/i;

/** Whether the header of a text is that of a message. Prose may begin with a word and a colon, too. */
export function beginsWithMessageHeader(raw: Buffer): boolean {
  if (!beginsWithHeaderField(raw)) return false;
  return headerLines(raw).some((line) => MESSAGE_FIELD.test(line));
}

const windows1252 = new TextDecoder("windows-1252");

/** The lines up to the first blank one, without their ends, of `HEADER_BYTES_MAX` at the most. Bytes that are not UTF-8 are windows-1252. */
function headerLines(raw: Buffer): string[] {
  if (/^\r?\n/.test(raw.toString("latin1", 0, 2))) return [];
  const first = raw.subarray(0, HEADER_BYTES_MAX);
  const ends = [first.indexOf("\n\n"), first.indexOf("\n\r\n")].filter((end) => end >= 0);
  const header = first.subarray(0, Math.min(first.length, ...ends.map((end) => end + 1)));
  const lines = isUtf8(header) ? header.toString().split("\n") : header.toString("latin1").split("\n").map(textOf);
  if (lines.at(-1) === "") lines.pop();
  return lines.map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
}

/** What old mail programs wrote, if it is not UTF-8. `line`: a character for each byte. */
function textOf(line: string): string {
  const bytes = Buffer.from(line, "latin1");
  return isUtf8(bytes) ? bytes.toString() : windows1252.decode(bytes);
}

/** A message with a broken header is still a message. */
function headerProblem(raw: Buffer, lines: readonly string[]): string | null {
  if (raw.length === 0) return "the message is empty";
  if (lines.length === 0) return "the message has no header";
  const isCut = lines.reduce((length, line) => length + line.length + 1, 0) >= HEADER_BYTES_MAX;
  if (isCut && raw.length > HEADER_BYTES_MAX) return "its header is too large: only the beginning was parsed";
  const broken = lines.findIndex((line, index) => !FIELD.test(line) && !(index > 0 && isFolded(line)));
  return broken < 0
    ? null
    : `line ${broken + 1} of the header is not a header field: ${quoted(lines[broken] as string)}`;
}

/** Whether the line continues the field before it. */
function isFolded(line: string): boolean {
  return line[0] === " " || line[0] === "\t";
}

function quoted(text: string): string {
  return JSON.stringify(text.length > QUOTED_LENGTH_MAX ? `${text.slice(0, QUOTED_LENGTH_MAX)}…` : text);
}

/** The first sender; the text where it has no address. */
function addressText(text: string | null): string | null {
  const { name = "", address: mailbox = "" }: Partial<Address> = addressParser(text ?? "")[0] ?? {};
  if (mailbox === "") return name || text;
  return name === "" ? mailbox : `${name} <${mailbox}>`;
}

/** What the parser reads as another time. */
const BAD_DATES = [
  // A zone without a sign, of 60 minutes and more, or of more than the 14 hours that exist.
  /\d +[A-Z][a-z]+ +\d{2,4} +[\d:]+ +(?:\d{4}\b|[+-](?:\d{2}[6-9]|1[5-9]|[2-9]\d))/,
  // A year of two digits that is neither one since 1971, when mail began, nor one of this century so far.
  /\d[ -]+[A-Z][a-z]{2}[ -]+[3-6]\d(?!\d)|\d[ -]+[A-Z][a-z]{2}[ -]+70(?!\d)/,
  // Two numbers that may both be the month.
  /(?:^|[ ,])(?:0?\d|1[0-2])\/(?:0?\d|1[0-2])\/\d{2}/,
];

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/** `31 Feb`, `31-Feb`, `Feb 31` and `2015-02-31`. */
const DAYS = [
  /(?<day>\d{1,2})[ -]+(?<month>[A-Z][a-z]{2})/,
  /(?<month>[A-Z][a-z]{2})[a-z]* +(?<day>\d{1,2})(?![\d:])/,
  /\d{4}[-/](?<month>\d{1,2})[-/](?<day>\d{1,2})/,
];

/** Whether the month has that day. The parser goes on in the next month. `year`: of the date as it was parsed. */
function isDayOfMonth(header: string, year: number): boolean {
  for (const form of DAYS) {
    const { day, month = "" } = form.exec(header)?.groups ?? {};
    const index = MONTHS.includes(month) ? MONTHS.indexOf(month) : Number(month) - 1;
    if (day !== undefined && index >= 0) return Number(day) <= new Date(Date.UTC(year, index + 1, 0)).getUTCDate();
  }
  return true;
}

/** Years before 1900 or of five digits are errors, too, whatever the parser makes of them. */
function plausibleDate(header: string | null): string | null {
  if (header === null || BAD_DATES.some((form) => form.test(header))) return null;
  const date = new Date(header);
  const year = date.getUTCFullYear();
  return year >= 1900 && year <= 9999 && isDayOfMonth(header, year) ? date.toISOString() : null;
}

/** Null when there is none. */
export function joinProblems(problems: readonly (string | null)[]): string | null {
  const present = problems.filter((problem) => problem !== null);
  return present.length === 0 ? null : present.join("; ");
}
