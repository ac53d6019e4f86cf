/**
 * Scans the sources and yields ranges, each when it is asked for: only one range is planned ahead.
 * Reads positions and never keeps a message.
 */
import { createReadStream } from "node:fs";
import { splitMbox } from "./mbox.js";
import type { MaildirItem, MailSource, MboxItem, Problem, Range } from "./source.js";

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

async function* scanMbox({ path }: MailSource, scan: Scan): AsyncGenerator<MboxItem, void> {
  let hasContent = false;
  for await (const part of splitMbox(createReadStream(path, { highWaterMark: CHUNK_BYTES }))) {
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
