/**
 * Cuts an mbox into its parts. Works on bytes as they stream by and says only where each part lies: memory stays constant
 * for files of any size. Knows nothing of what a message holds, except how a header begins.
 *
 * Invariant: the parts, from `offset` to `end`, follow each other without a gap from the file's first byte to its last.
 *
 * A message begins at a separator (see separator.ts) that follows a blank line, the file's start or a hole of NUL bytes.
 * Some programs leave the blank line out: Pipermail does after each attachment that it took away, 161 times in a year of
 * one list. A separator in the middle of text therefore counts too when a header field follows it at once.
 *
 * The blank line before the next separator, or at the file's end, belongs to the format and not to the message.
 */

import { type Line, LineReader } from "../mbox/line-reader.js";
import { isSeparator } from "../mbox/separator.js";
import { beginsWithHeaderField } from "../message/header-field.js";

/**
 * `message`: begins with a separator · `preamble`: text before the first separator · `unseparated`: the text of a file
 * without any separator · `blank`: blank lines at the start of a file, which mean nothing.
 */
type MboxPartKind = "message" | "preamble" | "unseparated" | "blank";

/** Where a part lies, in bytes from the start of the file. */
export interface MboxPart {
  readonly kind: MboxPartKind;
  readonly offset: number;
  /** Where its content begins: after the separator, for a message; else at `offset`. */
  readonly contentOffset: number;
  /** Where its content ends: before the blank line that belongs to the format. */
  readonly contentEnd: number;
  /** Where the next part begins. */
  readonly end: number;
}

/** The parts of an mbox. The bytes may come in chunks of any size; the parts are the same. */
export async function* splitMbox(chunks: AsyncIterable<Buffer>): AsyncGenerator<MboxPart, void> {
  const reader = new LineReader();
  const splitter = new MboxSplitter();
  for await (const chunk of chunks) {
    for (const line of reader.push(chunk)) yield* splitter.push(line);
  }
  for (const line of reader.end()) yield* splitter.push(line);
  yield* splitter.end();
}

interface OpenPart {
  readonly kind: "message" | "text" | "blank";
  readonly offset: number;
  readonly contentOffset: number;
}

const CARRIAGE_RETURN = 0x0d;

class MboxSplitter {
  #open: OpenPart | undefined;
  /** Where the lines seen so far end. */
  #end = 0;
  /** Length of the last line when it was blank, else 0. */
  #blankLength = 0;
  #separatorMayFollow = true;
  /** A separator in the middle of text, until the next line tells what it is. */
  #candidate: Line | undefined;
  #hasSeparator = false;

  *push(line: Line): Generator<MboxPart, void> {
    if (this.#candidate !== undefined && beginsWithHeaderField(line.head)) yield* this.#begin(this.#candidate, 0);
    this.#candidate = undefined;
    const blank = isBlank(line);
    if (isSeparator(line)) {
      if (this.#separatorMayFollow) yield* this.#begin(line, this.#blankLength);
      else this.#candidate = line;
    } else if (this.#open === undefined || (this.#open.kind === "blank" && !blank)) {
      yield* this.#close(line.offset, 0);
      this.#open = { kind: blank ? "blank" : "text", offset: line.offset, contentOffset: line.offset };
    }
    this.#end = line.end;
    this.#blankLength = blank ? line.end - line.offset : 0;
    this.#separatorMayFollow = blank || line.endsIn === "nul";
  }

  *end(): Generator<MboxPart, void> {
    yield* this.#close(this.#end, this.#blankLength);
  }

  *#begin(separator: Line, blankLength: number): Generator<MboxPart, void> {
    this.#hasSeparator = true;
    yield* this.#close(separator.offset, blankLength);
    this.#open = { kind: "message", offset: separator.offset, contentOffset: separator.end };
  }

  *#close(end: number, blankLength: number): Generator<MboxPart, void> {
    if (this.#open === undefined) return;
    const { kind, offset, contentOffset } = this.#open;
    const textKind = this.#hasSeparator ? "preamble" : "unseparated";
    if (kind === "message") yield { kind, offset, contentOffset, contentEnd: end - blankLength, end };
    else yield { kind: kind === "text" ? textKind : kind, offset, contentOffset, contentEnd: end, end };
  }
}

function isBlank(line: Line): boolean {
  const { head, endsIn } = line;
  return endsIn === "newline" && (head.length === 1 || (head.length === 2 && head[0] === CARRIAGE_RETURN));
}
