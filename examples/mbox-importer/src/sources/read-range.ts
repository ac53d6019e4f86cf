/**
 * The bytes of the messages of a range. Knows mboxes and maildirs, and nothing of numbers or archives.
 * A message that can't be read is named, and the others follow.
 */
import { open } from "node:fs/promises";
import { startsWithFrom } from "../mbox/separator.js";
import { beginsWithHeaderField } from "../message/header-field.js";
import { readMaildirMessage } from "./maildir.js";
import type { MboxPart } from "./mbox.js";
import type { Problem, Range } from "./range.js";

/** SQLite keeps no row above 10^9 bytes; the rest of the row needs a little of it. */
const MESSAGE_BYTES_MAX = 10 ** 9 - 1024 * 1024;

/** One message as it lies in its source. */
export interface FoundMessage {
  /** The path of an mbox; for a maildir, its path and the unique name of the message. */
  readonly source: string;
  readonly number: number;
  readonly byteOffset: number;
  /** The separator line of an mbox, with its end. `fromLine` and `raw` are exactly the bytes of the file. */
  readonly fromLine: Buffer | null;
  readonly raw: Buffer;
  /** Whether lines that begin with `From ` are quoted in `raw`. */
  readonly quoted: boolean;
  /** What is odd about where it lies. */
  readonly problem: string | null;
}

export interface ReadRange {
  readonly found: readonly FoundMessage[];
  readonly unread: readonly Problem[];
}

export async function readRange(range: Range): Promise<ReadRange> {
  const found: FoundMessage[] = [];
  const unread: Problem[] = [];
  const read = range.kind === "mbox" ? readMbox(range) : readMaildir(range);
  for await (const message of read) {
    if ("raw" in message) found.push(message);
    else unread.push(message);
  }
  return { found, unread };
}

/** One read for the whole range: it is small, or holds a single message. */
async function* readMbox({ path, parts }: Range & { kind: "mbox" }): AsyncGenerator<FoundMessage | Problem, void> {
  const start = parts[0]?.offset ?? 0;
  const end = parts.at(-1)?.contentEnd ?? start;
  const bytes = end - start > MESSAGE_BYTES_MAX ? null : await readBytes(path, start, end);
  for (const part of parts) {
    const where = { source: path, number: part.number, byteOffset: part.offset };
    const content = bytes?.subarray(part.offset - start, part.contentEnd - start);
    const refusal = refusalOf(part, content);
    if (content === undefined || refusal !== null) {
      yield { ...where, reason: refusal ?? tooLarge(end - start), stored: false };
    } else {
      yield { ...where, ...contentOf(part, content), quoted: part.kind === "message" };
    }
  }
}

function refusalOf(part: MboxPart, content: Buffer | undefined): string | null {
  if (content === undefined) return null;
  if (content.length < part.contentEnd - part.offset || (part.kind === "message" && !startsWithFrom(content))) {
    return "the file changed while it was imported";
  }
  if (part.kind === "unseparated" && !beginsWithHeaderField(content)) {
    return "the file has no separator and does not begin as a message does: it is no mbox";
  }
  return null;
}

function contentOf(part: MboxPart, content: Buffer): Pick<FoundMessage, "fromLine" | "raw" | "problem"> {
  const fromLineLength = part.contentOffset - part.offset;
  const raw = content.subarray(fromLineLength);
  const fromLine = part.kind === "message" ? content.subarray(0, fromLineLength) : null;
  return { fromLine, raw, problem: ODD_KINDS[part.kind] ?? holeProblem(raw) };
}

const ODD_KINDS: Partial<Record<MboxPart["kind"], string>> = {
  unseparated: "the file has no separator: taken as one message",
  preamble: "text before the first separator",
};

/** Bytes of NUL at the end of a message are what a crash leaves of the bytes that were to be written there. */
function holeProblem(raw: Buffer): string | null {
  let end = raw.length;
  while (end > 0 && raw[end - 1] === 0) end--;
  return end === raw.length ? null : `ends in ${raw.length - end} NUL bytes: a hole in the file`;
}

async function* readMaildir(range: Range & { kind: "maildir" }): AsyncGenerator<FoundMessage | Problem, void> {
  for (const message of range.messages) {
    const where = { source: `${range.path}/${message.unique}`, number: message.number, byteOffset: 0 };
    if (message.bytes > MESSAGE_BYTES_MAX) {
      yield { ...where, reason: tooLarge(message.bytes), stored: false };
      continue;
    }
    try {
      const raw = await readMaildirMessage(range.path, message);
      yield { ...where, fromLine: null, raw, quoted: false, problem: null };
    } catch (error) {
      yield { ...where, reason: `it can't be read: ${(error as Error).message}`, stored: false };
    }
  }
}

function tooLarge(bytes: number): string {
  return `its ${bytes} bytes are more than the ${MESSAGE_BYTES_MAX} that a row of the archive can hold`;
}

/** The bytes from `start` to `end`; fewer when the file has become shorter. */
async function readBytes(path: string, start: number, end: number): Promise<Buffer> {
  const file = await open(path);
  try {
    const bytes = Buffer.allocUnsafeSlow(end - start);
    let filled = 0;
    for (let bytesRead = -1; filled < bytes.length && bytesRead !== 0; filled += bytesRead) {
      ({ bytesRead } = await file.read(bytes, filled, bytes.length - filled, start + filled));
    }
    return bytes.subarray(0, filled);
  } finally {
    await file.close();
  }
}
