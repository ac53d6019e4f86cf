/**
 * Reads the messages of a range. Knows mboxes and maildirs, and nothing of numbers or archives.
 */
import { beginsWithMessageHeader, joinProblems } from "../message/parse-message.js";
import { isPacked, readBytes } from "./file.js";
import { FROM_BYTES, isBeginOfFrom, startsWithFrom } from "./line-reader.js";
import { isInFolder, isLetter, readMaildirMessage } from "./maildir.js";
import type { MboxPart } from "./mbox.js";
import { type Problem, type Range, STDIN } from "./source.js";

/** SQLite keeps no row above 10^9 bytes; the rest of the row needs a little of it. */
const MESSAGE_BYTES_MAX = 10 ** 9 - 1024 * 1024;

const NEWLINE = 0x0a;

/** One message as it is in its source. */
export interface SourceMessage {
  /** The path of an mbox, without `.gz`; for a maildir, its path and the unique name of the message. */
  readonly source: string;
  readonly number: number;
  readonly byteOffset: number;
  /** The separator line of an mbox, with its newline. `fromLine` and `raw` are exactly the bytes of the file. */
  readonly fromLine: Buffer | null;
  readonly raw: Buffer;
  /** What is wrong with its place in the source. */
  readonly problem: string | null;
}

/** Returns each message of the range in its order, or the reason why it can't be read. */
export async function readRange(range: Range): Promise<readonly (SourceMessage | Problem)[]> {
  if (range.kind === "stdin") return [await readStdin()];
  return range.kind === "mbox" ? await readMbox(range) : await readMaildir(range);
}

/** One message, with the separator of a delivering program or without one. @throws Error when the program ends in an error. */
async function readStdin(): Promise<SourceMessage | Problem> {
  const place = { source: STDIN, number: 1, byteOffset: 0 };
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MESSAGE_BYTES_MAX) break;
    chunks.push(chunk);
  }
  if (bytes === 0 || bytes > MESSAGE_BYTES_MAX) {
    return { ...place, reason: bytes === 0 ? "it is empty" : tooLarge(bytes), stored: false };
  }
  const content = Buffer.concat(chunks);
  const contentOffset = startsWithFrom(content) ? content.indexOf(NEWLINE) + 1 : 0;
  const raw = content.subarray(contentOffset);
  const fromLine = contentOffset > 0 ? content.subarray(0, contentOffset) : null;
  return { ...place, fromLine, raw, problem: unknownSeparators(raw, contentOffset) };
}

type Rejection = Pick<Problem, "reason" | "isTransient">;

/** One read for the whole range: it is small, or has a single message. */
async function readMbox(range: Range & { kind: "mbox" }): Promise<(SourceMessage | Problem)[]> {
  const { path, source, identity, items } = range;
  const start = items[0]?.offset ?? 0;
  const end = items.at(-1)?.contentEnd ?? start;
  let bytes: Buffer = Buffer.alloc(0);
  let failure: Rejection | undefined;
  try {
    if (end - start > MESSAGE_BYTES_MAX) failure = { reason: tooLarge(end - start) };
    else bytes = await readBytes(path, identity, start, isPacked(path) ? end : (items.at(-1)?.end ?? end) + FROM_BYTES);
  } catch (error) {
    failure = { reason: `it can't be read: ${(error as Error).message}`, isTransient: true };
  }
  const isSingle = isLetter(path);
  return items.map((part) => {
    const { number, offset: byteOffset } = part;
    const content = bytes.subarray(byteOffset - start, part.contentEnd - start);
    const next = bytes.subarray(part.end - start, part.end - start + FROM_BYTES);
    const rejection = failure ?? rejectionOf(part, content, next);
    if (rejection !== undefined) return Object.assign({ source, number, byteOffset, stored: false }, rejection);
    const { fromLine, raw, problem } = splitContent(part, content, isSingle);
    return { source, number, byteOffset, fromLine, raw, problem };
  });
}

/** `next`: what follows the part. */
function rejectionOf(part: MboxPart, content: Buffer, next: Buffer): Rejection | undefined {
  const isWhole = content.length === part.contentEnd - part.offset;
  // Other messages may have come to its place. Between two separators, the bytes are those of a whole one.
  const isSeparated = startsWithFrom(content) && isBeginOfFrom(next);
  if (!isWhole || (part.kind === "message" && !isSeparated)) {
    return { reason: "the file changed while it was imported", isTransient: true };
  }
  if (part.kind === "unseparated" && !beginsWithMessageHeader(content)) {
    const reason = "the file has no separator of a known form and does not begin like a message: it is not an mbox";
    return { reason };
  }
  return undefined;
}

function splitContent(
  part: MboxPart,
  content: Buffer,
  isSingle: boolean,
): Pick<SourceMessage, "fromLine" | "raw" | "problem"> {
  const fromLineLength = part.contentOffset - part.offset;
  const raw = content.subarray(fromLineLength);
  const fromLine = part.kind === "message" ? content.subarray(0, fromLineLength) : null;
  const partProblem = isSingle && part.kind === "unseparated" ? null : (PART_PROBLEMS[part.kind] ?? endProblem(raw));
  const problems = [partProblem, unknownSeparators(raw, part.contentOffset)];
  return { fromLine, raw, problem: joinProblems(problems) };
}

const PART_PROBLEMS: Partial<Record<MboxPart["kind"], string>> = {
  unseparated: "the file has no separator: taken as one message",
  preamble: "text before the first separator",
};

/** NUL bytes at the end of a message are what a crash leaves of the bytes that were to be written there. */
function endProblem(raw: Buffer): string | null {
  let end = raw.length;
  while (end > 0 && raw[end - 1] === 0) end--;
  if (end < raw.length) return `ends in ${raw.length - end} NUL bytes: a hole in the file`;
  if (end === 0 || raw[end - 1] === NEWLINE) return null;
  return "the file ends in the middle of a line: with the rest it is another message, and gets another number";
}

/** A line `From ` behind a blank line, with two header fields behind it. */
const UNKNOWN_SEPARATOR = /^(?:[^]?\n|\n?\r)?\n(From [^\n]*)\n[^\s:]+:[^\n]*\n(?:[ \t][^\n]*\n)*[^\s:]+:/;
/** Where the second field begins at the latest. */
const UNKNOWN_SEPARATOR_BYTES_MAX = 4000;
const NAMED_SEPARATOR_COUNT_MAX = 10;

/** Names the separators that were not taken for one. `offset`: where `raw` begins in its file. */
function unknownSeparators(raw: Buffer, offset: number): string | null {
  const found: string[] = [];
  for (let at = raw.indexOf("\nFrom "); at >= 0; at = raw.indexOf("\nFrom ", at + 1)) {
    const text = raw.toString("latin1", Math.max(at - 2, 0), at + UNKNOWN_SEPARATOR_BYTES_MAX);
    const line = UNKNOWN_SEPARATOR.exec(text)?.[1];
    if (line !== undefined) found.push(`${JSON.stringify(line.trimEnd().slice(0, 60))} at byte ${offset + at + 1}`);
  }
  if (found.length === 0) return null;
  const more = found.length > NAMED_SEPARATOR_COUNT_MAX ? `, … (${found.length} in all)` : "";
  return `may contain another message: a header follows ${found.slice(0, NAMED_SEPARATOR_COUNT_MAX).join(", ")}${more}`;
}

async function readMaildir(range: Range & { kind: "maildir" }): Promise<(SourceMessage | Problem)[]> {
  const read: (SourceMessage | Problem)[] = [];
  for (const message of range.items) {
    const place = { source: `${range.path}/${message.unique}`, number: message.number, byteOffset: 0 };
    try {
      if (message.bytes > MESSAGE_BYTES_MAX) throw new Error(tooLarge(message.bytes));
      const raw = await readMaildirMessage(range.path, message);
      const isMessage = !isInFolder(message) || beginsWithMessageHeader(raw);
      if (isMessage) read.push({ ...place, fromLine: null, raw, problem: null });
      else read.push({ ...place, reason: "it does not begin like a message", stored: false });
    } catch (error) {
      read.push({
        ...place,
        reason: `it can't be read: ${(error as Error).message}`,
        stored: false,
        isTransient: true,
      });
    }
  }
  return read;
}

function tooLarge(bytes: number): string {
  return `its ${bytes} bytes are more than the ${MESSAGE_BYTES_MAX} that a row of the archive can have`;
}
