/**
 * Scans the sources and yields ranges, each when it is asked for: only one range is planned ahead.
 * Reads positions and never keeps a message.
 */
import { createReadStream } from "node:fs";
import { type MboxPart, splitMbox } from "./mbox.js";
import type { MailSource, Numbered, Problem, Range } from "./source.js";

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

/** Yields the ranges of all sources, in order. A source that can't be read to its end is reported; the next one follows. */
export async function* planRanges(sources: readonly MailSource[], listener: PlanListener): AsyncGenerator<Range, void> {
  const limit = { messageCount: FIRST_RANGE_MESSAGE_COUNT };
  for (const source of sources) {
    const scan: Scan = { messages: 0, position: 0, notices: [] };
    try {
      yield* source.kind === "mbox" ? mboxRanges(source, scan, limit) : maildirRanges(source, scan, limit);
    } catch (error) {
      const place = { source: source.path, number: scan.messages + 1, byteOffset: scan.position };
      const reason = `the source can't be read on from here: ${(error as Error).message}`;
      listener.onProblem({ ...place, reason, stored: false });
    }
    const { kind, path, bytes } = source;
    listener.onSourceScanned({ kind, path, bytes, messages: scan.messages, notices: scan.notices });
  }
}

interface Scan {
  messages: number;
  position: number;
  readonly notices: string[];
}

interface RangeLimit {
  messageCount: number;
}

async function* mboxRanges(
  { path }: MailSource & { kind: "mbox" },
  scan: Scan,
  limit: RangeLimit,
): AsyncGenerator<Range, void> {
  const batch = new Batch<Numbered<MboxPart>>(limit);
  let hasContent = false;
  for await (const part of splitMbox(createReadStream(path, { highWaterMark: CHUNK_BYTES }))) {
    scan.position = part.end;
    if (part.kind === "blank") continue;
    hasContent = true;
    if (part.kind !== "preamble") scan.messages++;
    if (part.kind === "unseparated") scan.notices.push("has no separator: taken as one message if it looks like one");
    const bytes = part.end - part.offset;
    if (batch.isFullFor(bytes)) yield { kind: "mbox", path, ...batch.take() };
    batch.add({ ...part, number: part.kind === "preamble" ? 0 : scan.messages }, bytes);
  }
  if (!batch.isEmpty) yield { kind: "mbox", path, ...batch.take() };
  if (!hasContent) scan.notices.push(scan.position === 0 ? "is empty" : "has nothing but blank lines");
}

async function* maildirRanges(
  { path, messages, subfolders }: MailSource & { kind: "maildir" },
  scan: Scan,
  limit: RangeLimit,
): AsyncGenerator<Range, void> {
  const batch = new Batch<Numbered<(typeof messages)[number]>>(limit);
  for (const message of messages) {
    scan.messages++;
    if (batch.isFullFor(message.bytes)) yield { kind: "maildir", path, ...batch.take() };
    batch.add({ ...message, number: scan.messages }, message.bytes);
  }
  if (!batch.isEmpty) yield { kind: "maildir", path, ...batch.take() };
  if (scan.messages === 0) scan.notices.push("is empty");
  for (const name of subfolders) scan.notices.push(`contains the maildir ${name}, which is not imported: pass it too`);
}

/** Collects the items of a range. */
class Batch<T> {
  readonly #limit: RangeLimit;
  #items: T[] = [];
  #bytes = 0;

  constructor(limit: RangeLimit) {
    this.#limit = limit;
  }

  get isEmpty(): boolean {
    return this.#items.length === 0;
  }

  /** Whether an item of `bytes` must wait for the next range. */
  isFullFor(bytes: number): boolean {
    const isFull = this.#items.length >= this.#limit.messageCount || this.#bytes + bytes > RANGE_BYTES_MAX;
    return isFull && !this.isEmpty;
  }

  add(item: T, bytes: number): void {
    this.#items.push(item);
    this.#bytes += bytes;
  }

  take(): { readonly items: T[]; readonly bytes: number } {
    const taken = { items: this.#items, bytes: this.#bytes };
    this.#items = [];
    this.#bytes = 0;
    this.#limit.messageCount = Math.min(this.#limit.messageCount * 2, RANGE_MESSAGE_COUNT_MAX);
    return taken;
  }
}
