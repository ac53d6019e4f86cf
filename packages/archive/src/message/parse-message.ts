/**
 * Parses the header of a message into the fields that an archive keeps. Knows neither where the bytes come from nor where
 * the fields go. Never throws: what can't be read is reported. The body is stored as it is and never parsed, so that no
 * message, however it nests its parts, can make the importer run out of memory.
 */
import { isUtf8 } from "node:buffer";
import PostalMime, { type Address, type Email } from "postal-mime";

export interface MessageFields {
  /** The header's text, only trimmed: two Message-IDs that differ stay different. Null when absent or empty. */
  readonly messageId: string | null;
  readonly subject: string | null;
  readonly from: string | null;
  /** ISO 8601, UTC; null when the header is absent or can't be read. */
  readonly date: string | null;
  /** The header's text. */
  readonly dateHeader: string | null;
  /** What could not be read, for people; null when nothing is wrong. A missing Message-ID is common and no problem. */
  readonly problem: string | null;
}

/** Where a header without an end is cut. The parser of addresses needs 2 s for a single address list of this size. */
export const HEADER_BYTES_MAX = 512 * 1024;
const QUOTED_BYTES_MAX = 60;

export async function parseMessage(raw: Buffer): Promise<MessageFields> {
  const lines = [...headerLines(raw)];
  const problems = [headerProblem(raw, lines)];
  // Lines that are not UTF-8 are read as windows-1252: what old mail programs wrote.
  const readable = lines.map((line) => (isUtf8(line) ? line : Buffer.from(windows1252.decode(line))));
  try {
    const email = await PostalMime.parse(Buffer.concat(readable));
    const fields = selectFields(email);
    if ((Number.parseInt(headerText(email, "x-mozilla-status") ?? "", 16) & 0x0008) !== 0) {
      problems.push("it was deleted in Thunderbird, and waits for the folder to be compacted");
    }
    if (fields.dateHeader !== null && fields.date === null) {
      problems.push(`its date can't be read: ${JSON.stringify(fields.dateHeader.slice(0, QUOTED_BYTES_MAX))}`);
    }
    return { ...fields, problem: joinProblems(problems) };
  } catch (error) {
    problems.push(`its header can't be parsed: ${error instanceof Error ? error.message : String(error)}`);
    return {
      messageId: null,
      subject: null,
      from: null,
      date: null,
      dateHeader: null,
      problem: joinProblems(problems),
    };
  }
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
  return [...headerLines(raw)].some((line) => MESSAGE_FIELD.test(line.toString("latin1", 0, FIELD_NAME_LENGTH_MAX)));
}

const NEWLINE = 0x0a;
const BLANK_LINE = /^\r?\n/;
const windows1252 = new TextDecoder("windows-1252");

/** Yields the lines up to the first blank one, with their newlines, `HEADER_BYTES_MAX` at the most. */
function* headerLines(raw: Buffer): Generator<Buffer, void> {
  const header = raw.subarray(0, HEADER_BYTES_MAX);
  for (let start = 0; start < header.length; ) {
    const newline = header.indexOf(NEWLINE, start);
    const stop = newline < 0 ? header.length : newline + 1;
    const line = header.subarray(start, stop);
    if (line.length <= 2 && BLANK_LINE.test(line.toString("latin1"))) return;
    yield line;
    start = stop;
  }
}

/** A message with a broken header is still a message. */
function headerProblem(raw: Buffer, lines: readonly Buffer[]): string | null {
  if (raw.length === 0) return "the message is empty";
  if (lines.length === 0) return "the message has no header";
  const isCut = lines.reduce((bytes, { length }) => bytes + length, 0) === HEADER_BYTES_MAX;
  if (isCut && raw.length > HEADER_BYTES_MAX) return "its header is too large: only the beginning was parsed";
  const broken = lines.findIndex((line, index) => !beginsWithHeaderField(line) && !(index > 0 && isFolded(line)));
  if (broken < 0) return null;
  return `line ${broken + 1} of the header is no header field: ${quoted(lines[broken] as Buffer)}`;
}

/** Whether the line continues the field before it. */
function isFolded(line: Buffer): boolean {
  return line[0] === 0x20 || line[0] === 0x09;
}

function quoted(line: Buffer): string {
  const text = line.toString("latin1", 0, QUOTED_BYTES_MAX).trimEnd();
  return JSON.stringify(line.length > QUOTED_BYTES_MAX ? `${text}…` : text);
}

function selectFields(email: Email): Omit<MessageFields, "problem"> {
  const [messageId, dateHeader] = [headerText(email, "message-id"), headerText(email, "date")];
  return {
    // `<>` identifies nothing.
    messageId: messageId === "<>" ? null : messageId,
    subject: email.subject ?? null,
    // What quotes the lines of a header, too, has made `>From:` of it.
    from: addressText(email.from) ?? headerText(email, "from") ?? headerText(email, ">from"),
    date: plausibleDate(email.date, dateHeader),
    dateHeader,
  };
}

function headerText(email: Email, key: string): string | null {
  const value = email.headers.find((header) => header.key === key)?.value.trim();
  return value === undefined || value === "" ? null : value;
}

function addressText(address: Address | undefined): string | null {
  const { name = "", address: mailbox = "" } = address ?? {};
  if (mailbox === "") return name === "" ? null : name;
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
function plausibleDate(date: string | undefined, header: string | null): string | null {
  const text = header ?? "";
  if (BAD_DATES.some((form) => form.test(text)) || !isDayOfMonth(text, Number(date?.slice(0, 4)))) return null;
  return date !== undefined && /^(?:19|[2-9]\d)\d{2}-\d{2}-\d{2}T[\d:.]+Z$/.test(date) ? date : null;
}

/** Null when there is none. */
export function joinProblems(problems: readonly (string | null)[]): string | null {
  const present = problems.filter((problem) => problem !== null);
  return present.length === 0 ? null : present.join("; ");
}
