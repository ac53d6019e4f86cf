/**
 * A source of messages: an mbox or a maildir. To import something else, replace the files of this directory: yield
 * ranges of positions, and give each message a key that stays the same when it is imported again.
 */
import { createReadStream } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { ImporterError } from "../errors.js";
import { isMaildir, listMaildir, listSubfolders, type MaildirMessage } from "./maildir.js";
import { type MboxPart, splitMbox } from "./mbox.js";

/** `path` is absolute and without links: the same file has one name, from wherever it is imported. */
export type MailSource =
  | { readonly kind: "mbox"; readonly path: string; readonly bytes: number }
  | {
      readonly kind: "maildir";
      readonly path: string;
      readonly bytes: number;
      readonly messages: readonly MaildirMessage[];
      /** Directories inside that are maildirs of their own. They are not imported with it. */
      readonly subfolders: readonly string[];
    };

interface Numbered {
  /** Position in its source, from 1; 0 for text before the first separator. */
  readonly number: number;
  readonly bytes: number;
}

type MboxItem = MboxPart & Numbered;
type MaildirItem = MaildirMessage & Numbered;

/** Whole messages of one source, as positions: small enough for a message between processes and for one transaction. */
export type Range = { readonly path: string; readonly bytes: number } & (
  | { readonly kind: "mbox"; readonly items: readonly MboxItem[] }
  | { readonly kind: "maildir"; readonly items: readonly MaildirItem[] }
);

/** A part of a source that has no row in the archive, or a row with a remark. The summary lists it. */
export interface Problem {
  readonly source: string;
  readonly number: number;
  readonly byteOffset: number;
  readonly reason: string;
  readonly stored: boolean;
}

/** Resolves a path of the command line. @throws ImporterError `source_unusable` with what it is instead of a source. */
export async function openMailSource(given: string): Promise<MailSource> {
  let path: string;
  try {
    path = await realpath(given);
  } catch (error) {
    // Node.js replaces the bytes of an argument that are not UTF-8.
    const action = given.includes("\ufffd")
      ? "Rename it: its name is not UTF-8."
      : "Check the path and its permissions.";
    const message = `${given} can't be opened: ${(error as Error).message}. ${action}`;
    throw new ImporterError("source_unusable", message, { cause: error });
  }
  const stats = await stat(path);
  if (stats.isFile()) return { kind: "mbox", path, bytes: stats.size };
  if (!stats.isDirectory()) {
    const message = `${given} is neither a file nor a directory. Write a stream into a file first.`;
    throw new ImporterError("source_unusable", message);
  }
  if (!(await isMaildir(path))) {
    const message = `${given} is a directory but not a maildir: cur/ or new/ is missing. Pass the maildir or mbox files inside.`;
    throw new ImporterError("source_unusable", message);
  }
  const [messages, subfolders] = await Promise.all([listMaildir(path), listSubfolders(path)]);
  const bytes = messages.reduce((sum, message) => sum + message.bytes, 0);
  return { kind: "maildir", path, bytes, messages, subfolders };
}

const CHUNK_BYTES = 256 * 1024;
/** One transaction, and what a process loses when it is killed. */
const RANGE_MESSAGE_COUNT_MAX = 64;
/** A larger message is a range of its own. */
const RANGE_BYTES_MAX = 1024 * 1024;
/** The first ranges are small, so that all processes soon have work; each is twice as large as the one before. */
const FIRST_RANGE_MESSAGE_COUNT = 8;

/** What the scan found in one source. */
export interface ScannedSource {
  readonly kind: MailSource["kind"];
  readonly path: string;
  readonly bytes: number;
  readonly messages: number;
  /** Remarks about the source as a whole. */
  readonly notices: readonly string[];
}

export interface PlanListener {
  onSourceScanned(source: ScannedSource): void;
  onProblem(problem: Problem): void;
}

/**
 * Yields the ranges of all sources, in order, each when it is asked for: only one is planned ahead. A source that can't be read to its end is
 * reported; the next one follows.
 */
export async function* planRanges(sources: readonly MailSource[], listener: PlanListener): AsyncGenerator<Range, void> {
  let messageCountMax = FIRST_RANGE_MESSAGE_COUNT;
  for (const source of sources) {
    const { kind, path } = source;
    const scan: Scan = { messages: 0, position: 0, notices: [] };
    let items: (MboxItem | MaildirItem)[] = [];
    let bytes = 0;
    const takeRange = () => {
      const range = { kind, path, bytes, items } as Range;
      items = [];
      bytes = 0;
      messageCountMax = Math.min(messageCountMax * 2, RANGE_MESSAGE_COUNT_MAX);
      return range;
    };
    try {
      for await (const item of source.kind === "mbox" ? scanMbox(source, scan) : scanMaildir(source, scan)) {
        const isFull = items.length >= messageCountMax || bytes + item.bytes > RANGE_BYTES_MAX;
        if (isFull && items.length > 0) yield takeRange();
        items.push(item);
        bytes += item.bytes;
      }
    } catch (error) {
      const place = { source: path, number: scan.messages + 1, byteOffset: scan.position };
      const reason = `the source can't be read on from here: ${(error as Error).message}`;
      listener.onProblem({ ...place, reason, stored: false });
    }
    if (items.length > 0) yield takeRange();
    listener.onSourceScanned({ kind, path, bytes: source.bytes, messages: scan.messages, notices: scan.notices });
  }
}

interface Scan {
  messages: number;
  position: number;
  readonly notices: string[];
}

/** What a file begins with, in hex, that must be converted before it can be imported. */
const FOREIGN_FORMATS = [
  { begin: /^1f8b/, reason: "it is compressed by gzip: unpack it with gunzip first" },
  // `BZh` and a digit: a text may begin with the letters alone.
  { begin: /^425a683[1-9]/, reason: "it is compressed by bzip2: unpack it with bunzip2 first" },
  { begin: /^fd377a585a00/, reason: "it is compressed by xz: unpack it with unxz first" },
  { begin: /^28b52ffd/, reason: "it is compressed by zstd: unpack it with unzstd first" },
  { begin: /^504b0304/, reason: "it is a zip archive: unpack it with unzip first" },
  { begin: /^(?:fffe|feff)/, reason: "it is UTF-16: convert it to UTF-8 first" },
];
const FOREIGN_BEGIN_BYTES = 6;

/**
 * Reads to the end as it is then: a file may grow. @throws Error for a foreign format, and if the file became shorter, since
 * its last message is cut.
 */
async function* readChunks({ path, bytes }: MailSource): AsyncGenerator<Buffer, void> {
  let position = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES }) as AsyncIterable<Buffer>) {
    const begin = position === 0 ? chunk.toString("hex", 0, FOREIGN_BEGIN_BYTES) : "";
    const foreign = FOREIGN_FORMATS.find((format) => format.begin.test(begin));
    if (foreign !== undefined) throw new Error(foreign.reason);
    position += chunk.length;
    yield chunk;
  }
  if (position < bytes) throw new Error(`it became shorter during the import, ${position} bytes instead of ${bytes}`);
}

async function* scanMbox(source: MailSource, scan: Scan): AsyncGenerator<MboxItem, void> {
  let hasContent = false;
  for await (const part of splitMbox(readChunks(source))) {
    scan.position = part.end;
    if (part.kind === "blank") continue;
    hasContent = true;
    if (part.kind !== "preamble") scan.messages++;
    if (part.kind === "unseparated") scan.notices.push("has no separator: taken as one message if it looks like one");
    const number = part.kind === "preamble" ? 0 : scan.messages;
    yield { ...part, number, bytes: part.end - part.offset };
  }
  if (!hasContent) scan.notices.push(scan.position === 0 ? "is empty" : "has nothing but blank lines");
}

function* scanMaildir({ messages, subfolders }: MailSource & { kind: "maildir" }, scan: Scan): Generator<MaildirItem> {
  for (const message of messages) yield { ...message, number: ++scan.messages };
  if (scan.messages === 0) scan.notices.push("is empty");
  for (const name of subfolders) scan.notices.push(`contains the maildir ${name}, which is not imported: pass it too`);
}
