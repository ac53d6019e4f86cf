/** A message on its way out: with the address of its page in its header, and quoted for an mbox. The stored bytes stay as they are. */
import { isUsualSeparator } from "../sources/mbox.js";

const NUL = 0x00;
const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const QUOTE = 0x3e;
const FROM_ = Buffer.from("From ");

/**
 * Yields the message with the field `Archived-At` (RFC 5064) in front, or behind first lines that continue a field. All other bytes stay.
 * `chunks`: its bytes; the first chunk has all such lines.
 */
export function* withArchivedAt(chunks: Iterable<Buffer>, url: string): Generator<Buffer> {
  let isFirst = true;
  for (const chunk of chunks) {
    const at = isFirst ? endOfFolded(chunk) : 0;
    if (at > 0) yield chunk.subarray(0, at);
    const newline = chunk.indexOf(NEWLINE);
    const lineEnd = newline > 0 && chunk[newline - 1] === CARRIAGE_RETURN ? "\r\n" : "\n";
    if (isFirst) yield Buffer.from(`Archived-At: <${url}>${lineEnd}`);
    yield chunk.subarray(at);
    isFirst = false;
  }
}

function endOfFolded(bytes: Buffer): number {
  let end = 0;
  while (bytes[end] === 0x20 || bytes[end] === 0x09) {
    const newline = bytes.indexOf(NEWLINE, end);
    if (newline < 0) return 0;
    end = newline + 1;
  }
  return end;
}

/** What an export knows of a message. */
export interface ExportedMessage {
  readonly fromLine: Buffer | null;
  readonly raw: Buffer;
  readonly date: string | null;
  readonly url: string;
}

/** Yields the message for an mbox in the form mboxrd: each line that begins with `From `, or with `>` before it, gets one more `>`. */
export function* mboxEntry({ fromLine, raw, date, url }: ExportedMessage): Generator<Buffer> {
  // In other mail, a separator of a rare form is text.
  const isKept = fromLine !== null && isUsualSeparator(fromLine);
  const separator = isKept ? fromLine : Buffer.from(`From MAILER-DAEMON ${asctime(date ?? "1970-01-01T00:00:00Z")}`);
  yield separator;
  if (separator.at(-1) !== NEWLINE) yield Buffer.from("\n");
  for (const bytes of withArchivedAt([raw], url)) yield* quoted(bytes);
  yield Buffer.from(raw.length > 0 && raw.at(-1) !== NEWLINE ? "\n\n" : "\n");
}

function* quoted(bytes: Buffer): Generator<Buffer> {
  let end = 0;
  for (let found = bytes.indexOf(FROM_); found >= 0; found = bytes.indexOf(FROM_, found + 1)) {
    let start = found;
    while (bytes[start - 1] === QUOTE) start--;
    // Behind NUL bytes, a line begins, too.
    if (start > 0 && bytes[start - 1] !== NEWLINE && bytes[start - 1] !== NUL) continue;
    yield bytes.subarray(end, start);
    yield Buffer.from(">");
    end = start;
  }
  yield bytes.subarray(end);
}

/** As `Tue Apr 22 07:12:05 2025`, in UTC. */
function asctime(date: string): string {
  const [weekday, day = "", month, year, time] = new Date(date).toUTCString().replace(",", "").split(" ");
  return `${weekday} ${month} ${day.replace(/^0/, " ")} ${time} ${year}`;
}
