/**
 * From the bytes of one message to the fields that an archive keeps. Knows neither where the bytes come from nor where the
 * fields go. Never throws: what can't be read is named.
 *
 * The whole message is parsed, not only its header: a message whose parts can't be read shall be named today, not when
 * somebody opens it in ten years.
 */
import PostalMime, { type Address, type Email } from "postal-mime";
import { hasWholeHeader, headerBlockOf, headerProblem, withReadableHeader } from "./header-block.js";

export interface MessageFields {
  /** The header's text, only trimmed: two Message-IDs that differ stay different. Null when absent or empty. */
  readonly messageId: string | null;
  readonly subject: string | null;
  readonly from: string | null;
  /** ISO 8601, UTC; null when the header is absent or can't be read. */
  readonly date: string | null;
  /** The header as it stands. */
  readonly dateHeader: string | null;
  /** What could not be read, for people; null when nothing is wrong. A missing Message-ID is common and no problem. */
  readonly problem: string | null;
}

/**
 * Above these only the header is parsed. A parser keeps every line of a text, and every piece of base64 that `=` ends: measured, 4 million
 * lines in 8 MB take 5 GB and 30 s, as many pieces in 12 MB the same. One message must not be able to end the process that reads it,
 * again and again.
 */
export const PARSE_BYTES_MAX = 32 * 1024 * 1024;
export const PARSE_PIECE_COUNT_MAX = 500_000;
const PIECE_ENDS = ["\n", "="].map((end) => end.charCodeAt(0));

/** A message within the message is kept as it is: its own header costs as much as this one's, and there may be a thousand of them. */
const PARSING = { forceRfc822Attachments: true } as const;

/** `raw` without the quoting of its mailbox. */
export async function parseMessage(raw: Buffer): Promise<MessageFields> {
  const problems: (string | null)[] = [headerProblem(raw)];
  const parsed = isTooMuch(raw) ? headerBlockOf(raw) : raw;
  if (parsed !== raw) problems.push("it is too large to be parsed: only its header was");
  try {
    const email = await PostalMime.parse(withReadableHeader(parsed), PARSING);
    const fields = fieldsOf(email);
    problems.push(dateProblem(fields));
    return { ...fields, problem: inWords(problems) };
  } catch (error) {
    problems.push(`it can't be parsed: ${error instanceof Error ? error.message : String(error)}`);
    return { messageId: null, subject: null, from: null, date: null, dateHeader: null, problem: inWords(problems) };
  }
}

function isTooMuch(raw: Buffer): boolean {
  if (raw.length > PARSE_BYTES_MAX || !hasWholeHeader(raw)) return true;
  // No piece is shorter than its end.
  if (raw.length <= PARSE_PIECE_COUNT_MAX) return false;
  let pieceCount = 0;
  for (const mark of PIECE_ENDS) {
    for (let end = raw.indexOf(mark); end >= 0; end = raw.indexOf(mark, end + 1)) {
      if (++pieceCount > PARSE_PIECE_COUNT_MAX) return true;
    }
  }
  return false;
}

function fieldsOf(email: Email): Omit<MessageFields, "problem"> {
  return {
    messageId: messageIdOf(headerOf(email, "message-id")),
    subject: email.subject ?? null,
    from: nameOf(email.from) ?? headerOf(email, "from"),
    date: readableDate(email.date),
    dateHeader: headerOf(email, "date"),
  };
}

function headerOf(email: Email, key: string): string | null {
  const value = email.headers.find((header) => header.key === key)?.value.trim();
  return value === undefined || value === "" ? null : value;
}

/** `<>` identifies nothing. */
function messageIdOf(value: string | null): string | null {
  return value === "<>" ? null : value;
}

function nameOf(address: Address | undefined): string | null {
  const { name = "", address: mailbox = "" } = address ?? {};
  if (mailbox === "") return name === "" ? null : name;
  return name === "" ? mailbox : `${name} <${mailbox}>`;
}

/** Years before 1900 or of five digits are a date that nobody meant, whatever the parser makes of them. */
function readableDate(date: string | undefined): string | null {
  return date !== undefined && /^(?:19|[2-9]\d)\d{2}-\d{2}-\d{2}T[\d:.]+Z$/.test(date) ? date : null;
}

function dateProblem({ date, dateHeader }: Omit<MessageFields, "problem">): string | null {
  return dateHeader !== null && date === null
    ? `its date can't be read: ${JSON.stringify(dateHeader.slice(0, 60))}`
    : null;
}

function inWords(problems: readonly (string | null)[]): string | null {
  const named = problems.filter((problem) => problem !== null);
  return named.length === 0 ? null : named.join("; ");
}
