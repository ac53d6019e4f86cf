/**
 * A source of messages: an mbox or a maildir. To import something else, replace the files of this directory: yield
 * ranges of positions, and give each message a key that stays the same when it is imported again.
 */
import type { Stats } from "node:fs";
import { type FileHandle, open, readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { ArchiveError } from "../errors.js";
import { chunksOf, identityOf, isPacked, unpackedPath } from "./file.js";
import { foreignFormat } from "./foreign-formats.js";
import { isMaildir, listLetters, listMaildir, listSubfolders, type MaildirMessage } from "./maildir.js";
import { type MboxForm, type MboxPart, splitMbox } from "./mbox.js";

/** The name of standard input on the command line, and of what came from it in the archive. */
export const STDIN = "-";

/** `path` is absolute and without links: the same file has one name, from wherever it is imported. */
export type MailSource =
  | {
      readonly kind: "mbox";
      readonly path: string;
      /** As of a range. */
      readonly source: string;
      readonly bytes: number;
      readonly identity: string;
    }
  | {
      readonly kind: "maildir";
      readonly path: string;
      readonly bytes: number;
      readonly messages: readonly MaildirMessage[];
      readonly notices: readonly string[];
    }
  /** A message on standard input. */
  | { readonly kind: "stdin"; readonly path: string; readonly bytes: 0 }
  /** What is among mailboxes and is not imported, with why. */
  | { readonly kind: "other"; readonly path: string; readonly bytes: 0; readonly reason: string };

interface Numbered {
  /** Position in its source, from 1; 0 for text before the first separator. */
  readonly number: number;
  readonly bytes: number;
}

export type MboxItem = MboxPart & Numbered;
export type MaildirItem = MaildirMessage & Numbered;
type Item = MboxItem | MaildirItem;

/** Whole messages of one source, as positions: small enough for a message between processes and for one transaction. */
export type Range = { readonly path: string; readonly bytes: number } & (
  | {
      readonly kind: "mbox";
      /** Of the file that was scanned: another one may have its path when it is read. */
      readonly identity: string;
      /** What identifies its messages in the archive: the path before the file was compressed or rotated. */
      readonly source: string;
      readonly items: readonly MboxItem[];
    }
  | { readonly kind: "maildir"; readonly items: readonly MaildirItem[] }
  | { readonly kind: "stdin"; readonly items: readonly Numbered[] }
);

/** A part of a source that has no row in the archive, or a row with a remark. The summary lists it. */
export interface Problem {
  readonly source: string;
  readonly number: number;
  readonly byteOffset: number;
  readonly reason: string;
  readonly stored: boolean;
  /** The source has changed since it was scanned: read again, the part may be stored. */
  readonly isTransient?: true;
  /** It is no mail, and nothing is missing. */
  readonly isNoMail?: true;
}

/** A path of the command line, absolute and without links, and what is there: of a directory that is no maildir, the mboxes in it. */
export interface OpenedPath {
  readonly path: string;
  readonly sources: readonly MailSource[];
}

/**
 * Resolves a path of the command line. `mayBeEmpty`: takes a directory into which the first mbox is still to come.
 * @throws ArchiveError `source_unusable` with what it is instead of a source.
 */
export async function openMailSources(given: string, mayBeEmpty = false): Promise<OpenedPath> {
  if (given === STDIN) return { path: STDIN, sources: [{ kind: "stdin", path: STDIN, bytes: 0 }] };
  let path: string;
  try {
    path = await realpath(given);
  } catch (error) {
    // Node.js replaces the bytes of an argument that are not UTF-8.
    const action = given.includes("\ufffd")
      ? "Rename it: its name is not UTF-8."
      : "Check the path and its permissions.";
    const message = `${given} can't be opened: ${(error as Error).message}. ${action}`;
    throw new ArchiveError("source_unusable", message, { cause: error });
  }
  const stats = await stat(path);
  if (stats.isFile()) return { path, sources: [mboxSource(path, stats)] };
  if (!stats.isDirectory()) {
    const message = `${given} is neither a file nor a directory. Write a stream into a file first.`;
    throw new ArchiveError("source_unusable", message);
  }
  if (await isMaildir(path)) {
    const [messages, subfolders] = await Promise.all([listMaildir(path), listSubfolders(path)]);
    return { path, sources: [maildirSource(path, messages, subfolders.map(subfolderNotice))] };
  }
  const sources: MailSource[] = [];
  const names = (await readdir(path)).filter((name) => !isHidden(name)).sort();
  const letters = await listLetters(path, names);
  if (letters.length > 0) sources.push(maildirSource(path, letters, ["each file is a message, as in MH, or .eml"]));
  const others = new Set(letters.map(({ unique }) => unique));
  const directories: string[] = [];
  for (const name of names.filter((name) => !others.has(name))) {
    const reason = reasonForNoMail(name);
    if (reason !== undefined) sources.push({ kind: "other", path: join(path, name), bytes: 0, reason });
    if (!mayBeMbox(name)) continue;
    const file = join(path, name);
    const found = await stat(file).catch(() => undefined);
    // Why it can't be read is reported when it is scanned.
    if (found === undefined) sources.push({ kind: "mbox", path: file, source: file, bytes: 0, identity: "" });
    else if (found.isFile()) sources.push(mboxSource(file, found));
    else if (found.isDirectory()) directories.push(name);
  }
  if (sources.length === 0 && !mayBeEmpty) {
    const action =
      directories.length === 0 ? "Check the path" : `Pass those inside that have mail: ${some(directories)}`;
    const message = `${given} is a directory without mboxes, and not a maildir: cur/ or new/ is missing. ${action}.`;
    throw new ArchiveError("source_unusable", message);
  }
  if (directories.length > 0) {
    const reason = `directories inside are not imported, pass those that have mail, too: ${some(directories)}`;
    sources.push({ kind: "other", path, bytes: 0, reason });
  }
  return { path, sources };
}

const NAMED_COUNT_MAX = 5;

function some(names: readonly string[]): string {
  const more = names.length > NAMED_COUNT_MAX ? `, … (${names.length} in all)` : "";
  return `${names.slice(0, NAMED_COUNT_MAX).join(", ")}${more}`;
}

export function subfolderNotice(name: string): string {
  return `contains the maildir ${name}, which is not imported: pass it too`;
}

function maildirSource(path: string, messages: readonly MaildirMessage[], notices: readonly string[]): MailSource {
  return { kind: "maildir", path, bytes: messages.reduce((sum, { bytes }) => sum + bytes, 0), messages, notices };
}

function mboxSource(path: string, stats: Stats): MailSource {
  return { kind: "mbox", path, source: unpackedPath(path), bytes: stats.size, identity: identityOf(path, stats) };
}

function isHidden(name: string): boolean {
  return name.startsWith(".") || name.endsWith(".lock");
}

const NO_MAIL: readonly (readonly [name: RegExp, reason: string])[] = [
  [/^table_of_contents$|\.(?:msf|toc)$/, "it is the index of a mail program, and has no messages"],
  [/^[,#]\d+$/, "it is a message that was deleted in MH, and is not imported: rename it to keep it"],
];

function reasonForNoMail(name: string): string | undefined {
  return NO_MAIL.find(([form]) => form.test(name))?.[1];
}

/** In a directory of mboxes: not hidden, nor the lock or an index of a mail program. */
export function mayBeMbox(name: string): boolean {
  return !isHidden(name) && reasonForNoMail(name) === undefined;
}

/** One transaction, and what a process loses when it is killed. */
const RANGE_MESSAGE_COUNT_MAX = 256;
/** A larger message is a range of its own. */
const RANGE_BYTES_MAX = 2 * 1024 * 1024;
/** The first ranges are small, so that all processes soon have work; each is twice as large as the one before. */
const FIRST_RANGE_MESSAGE_COUNT = 8;

/** What the scan found in one source. */
export interface ScannedSource {
  readonly kind: Range["kind"];
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
  const rangeSize = new RangeSize();
  for (const source of sources) {
    const { kind, path, bytes } = source;
    if (kind === "other") {
      const { reason } = source;
      listener.onProblem({ source: path, number: 0, byteOffset: 0, reason, stored: false, isNoMail: true });
      continue;
    }
    if (kind === "stdin") {
      yield { kind, path, bytes, items: [{ number: 1, bytes }] };
      listener.onSourceScanned({ kind, path, bytes, messages: 1, notices: [] });
      continue;
    }
    const scan = newScan();
    try {
      yield* toRanges(source, source.kind === "mbox" ? scanPath(source, scan) : scanMaildir(source, scan), rangeSize);
    } catch (error) {
      const place = { source: path, number: scan.messages + 1, byteOffset: scan.position };
      const reason = `the source can't be read on from here: ${(error as Error).message}`;
      listener.onProblem({ ...place, reason, stored: false });
    }
    listener.onSourceScanned({ kind, path, bytes, messages: scan.messages, notices: scan.notices });
  }
}

/** How many messages the next range may have. */
export class RangeSize {
  messageCountMax = FIRST_RANGE_MESSAGE_COUNT;

  grow(): void {
    this.messageCountMax = Math.min(this.messageCountMax * 2, RANGE_MESSAGE_COUNT_MAX);
  }
}

/** Puts items, which come in batches, together into ranges. Those before an error of `batches` come before the error. */
export async function* toRanges(
  place: Pick<Range, "kind" | "path"> & { readonly source?: string; readonly identity?: string },
  batches: AsyncIterable<readonly Item[]> | Iterable<readonly Item[]>,
  rangeSize: RangeSize,
): AsyncGenerator<Range, void> {
  const { kind, path, source, identity } = place;
  let taken: Item[] = [];
  let bytes = 0;
  const takeRange = () => {
    const range = { kind, path, source, identity, bytes, items: taken } as Range;
    taken = [];
    bytes = 0;
    rangeSize.grow();
    return range;
  };
  let failure: unknown;
  try {
    for await (const items of batches) {
      for (const item of items) {
        const isFull = taken.length >= rangeSize.messageCountMax || bytes + item.bytes > RANGE_BYTES_MAX;
        if (isFull && taken.length > 0) yield takeRange();
        taken.push(item);
        bytes += item.bytes;
      }
    }
  } catch (error) {
    failure = error;
  }
  if (taken.length > 0) yield takeRange();
  if (failure !== undefined) throw failure;
}

/** How far the scan of a source has come. */
export interface Scan {
  messages: number;
  /** Where the parts that were found end. */
  position: number;
  /** Where the bytes that were read end. */
  readEnd: number;
  /** Of an mbox. */
  readonly form: MboxForm;
  readonly notices: string[];
}

export function newScan(): Scan {
  return { messages: 0, position: 0, readEnd: 0, form: { hasLengths: true }, notices: [] };
}

/** `file`: open to be read, since another one may have its path at any time. */
type MboxPlace = { readonly file: FileHandle; readonly path: string; readonly bytes: number };

/**
 * Reads from `scan.position` to the end as it is then: a file may grow; one that is followed, to `bytes`. @throws Error for a
 * foreign format, and if the file became shorter, since its last message is cut.
 */
async function* readChunks(place: MboxPlace, scan: Scan, isGrowing: boolean): AsyncGenerator<Buffer, void> {
  const { file, path, bytes } = place;
  scan.readEnd = scan.position;
  if (isGrowing && scan.position >= bytes) return;
  const end = isGrowing ? bytes - 1 : Number.POSITIVE_INFINITY;
  for await (const chunk of chunksOf(file, path, scan.position, end)) {
    const foreign = scan.readEnd === 0 ? foreignFormat(chunk) : undefined;
    if (foreign !== undefined) throw new Error(foreign);
    scan.readEnd += chunk.length;
    yield chunk;
  }
  if (scan.readEnd < bytes && !isPacked(path))
    throw new Error(`it became shorter during the import, ${scan.readEnd} bytes instead of ${bytes}`);
}

/** Begins at `scan.position`, the begin of message `scan.messages + 1`. `isGrowing`: as for `splitMbox`. */
export async function* scanMbox(source: MboxPlace, scan: Scan, isGrowing = false): AsyncGenerator<MboxItem[], void> {
  let hasContent = false;
  const batches = splitMbox(readChunks(source, scan, isGrowing), { start: scan.position, isGrowing, form: scan.form });
  for await (const parts of batches) {
    const items: MboxItem[] = [];
    for (const part of parts) {
      scan.position = part.end;
      if (part.kind === "blank") continue;
      if (part.kind !== "preamble") scan.messages++;
      if (part.kind === "unseparated") scan.notices.push("has no separator: taken as one message if it looks like one");
      const number = part.kind === "preamble" ? 0 : scan.messages;
      items.push({ number, bytes: part.end - part.offset, ...part });
    }
    hasContent ||= items.length > 0;
    yield items;
  }
  if (!hasContent) scan.notices.push(scan.position === 0 ? "is empty" : "has nothing but blank lines");
}

async function* scanPath(source: { path: string; bytes: number }, scan: Scan): AsyncGenerator<MboxItem[], void> {
  const file = await open(source.path);
  try {
    yield* scanMbox({ ...source, file }, scan);
  } finally {
    await file.close();
  }
}

function* scanMaildir({ messages, notices }: MailSource & { kind: "maildir" }, scan: Scan): Generator<MaildirItem[]> {
  yield messages.map((message) => ({ number: ++scan.messages, ...message }));
  if (scan.messages === 0) scan.notices.push("is empty");
  scan.notices.push(...notices);
}
