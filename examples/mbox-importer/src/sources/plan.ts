/**
 * Scans the sources and deals them out as ranges, each when it is asked for: only one range is planned ahead.
 * Reads positions, never keeps a message.
 */
import { createReadStream } from "node:fs";
import { Gathering, RangeSizes } from "./gathering.js";
import type { MaildirMessage } from "./maildir.js";
import { type MboxPart, splitMbox } from "./mbox.js";
import type { Numbered, Problem, Range } from "./range.js";
import type { MailSource } from "./source.js";

const CHUNK_BYTES = 256 * 1024;

/** What the scan found in one source. */
export interface ScannedSource {
  readonly kind: MailSource["kind"];
  readonly path: string;
  readonly bytes: number;
  readonly messages: number;
  /** What a person should know about the source as a whole. */
  readonly notices: readonly string[];
}

export interface PlanListener {
  onSourceScanned(source: ScannedSource): void;
  onProblem(problem: Problem): void;
}

/** The ranges of all sources, in order. A source that can't be read to its end is named, and the next one follows. */
export async function* planRanges(sources: readonly MailSource[], listener: PlanListener): AsyncGenerator<Range, void> {
  const sizes = new RangeSizes();
  for (const source of sources) {
    const scan = new Scan(source);
    try {
      yield* source.kind === "mbox" ? mboxRanges(source, scan, sizes) : maildirRanges(source, scan, sizes);
    } catch (error) {
      const reason = `the source can't be read on from here: ${(error as Error).message}`;
      listener.onProblem({
        source: source.path,
        number: scan.messages + 1,
        byteOffset: scan.position,
        reason,
        stored: false,
      });
    }
    listener.onSourceScanned(scan.result());
  }
}

class Scan {
  messages = 0;
  position = 0;
  readonly notices: string[] = [];
  readonly #source: MailSource;

  constructor(source: MailSource) {
    this.#source = source;
  }

  result(): ScannedSource {
    const { kind, path, bytes } = this.#source;
    return { kind, path, bytes, messages: this.messages, notices: this.notices };
  }
}

async function* mboxRanges(
  source: MailSource & { kind: "mbox" },
  scan: Scan,
  sizes: RangeSizes,
): AsyncGenerator<Range, void> {
  const gathered = new Gathering<Numbered<MboxPart>>(sizes);
  const rangeOf = (): Range => ({ kind: "mbox", path: source.path, parts: gathered.take() });
  let hasContent = false;
  for await (const part of splitMbox(createReadStream(source.path, { highWaterMark: CHUNK_BYTES }))) {
    scan.position = part.end;
    if (part.kind === "blank") continue;
    hasContent = true;
    if (part.kind !== "preamble") scan.messages++;
    if (part.kind === "unseparated") scan.notices.push("has no separator: taken as one message if it looks like one");
    const bytes = part.end - part.offset;
    if (gathered.isFullFor(bytes)) yield rangeOf();
    gathered.add({ ...part, number: part.kind === "preamble" ? 0 : scan.messages }, bytes);
  }
  if (gathered.count > 0) yield rangeOf();
  if (!hasContent) scan.notices.push(scan.position === 0 ? "is empty" : "holds nothing but blank lines");
}

async function* maildirRanges(
  source: MailSource & { kind: "maildir" },
  scan: Scan,
  sizes: RangeSizes,
): AsyncGenerator<Range, void> {
  const gathered = new Gathering<Numbered<MaildirMessage>>(sizes);
  const rangeOf = (): Range => ({ kind: "maildir", path: source.path, messages: gathered.take() });
  for (const message of source.messages) {
    scan.messages++;
    if (gathered.isFullFor(message.bytes)) yield rangeOf();
    gathered.add({ ...message, number: scan.messages }, message.bytes);
  }
  if (gathered.count > 0) yield rangeOf();
  if (scan.messages === 0) scan.notices.push("is empty");
  for (const name of source.subfolders)
    scan.notices.push(`holds the maildir ${name}, which is not imported with it: name it too`);
}
