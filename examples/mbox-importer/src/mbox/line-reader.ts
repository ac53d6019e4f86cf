/**
 * Bytes in, lines out: where each line lies in the file, and how it begins.
 * Knows nothing of mail. Keeps at most `LINE_HEAD_BYTES_MAX` bytes of a line, however long the line is.
 *
 * A run of NUL bytes ends a line too: it is the hole that a crash leaves in a file, and a line may begin right after it.
 */

/** RFC 5322 allows lines of 998 bytes; what lies further along is of no interest to a splitter. */
const LINE_HEAD_BYTES_MAX = 1000;

export interface Line {
  /** Where the line begins, in bytes from the start of the file. */
  readonly offset: number;
  /** Where the next line begins. */
  readonly end: number;
  /** The line's first bytes, its end included where it is short enough. */
  readonly head: Buffer;
  readonly endsIn: "newline" | "nul" | "file";
}

const NEWLINE = 0x0a;
const NUL = 0x00;
const EMPTY = Buffer.alloc(0);

export class LineReader {
  #offset = 0;
  #position = 0;
  #head: Buffer = EMPTY;

  /** The lines that `chunk`, the file's next bytes, brings to an end. Consume them all before the next `push`. */
  *push(chunk: Buffer): Generator<Line, void> {
    let nextNul = chunk.indexOf(NUL);
    let newline = chunk.indexOf(NEWLINE);
    for (let start = 0; start < chunk.length; ) {
      // Looked for once: of a file of NULs each would look to the end of the chunk.
      if (newline >= 0 && newline < start) newline = chunk.indexOf(NEWLINE, start);
      let stop = newline < 0 ? chunk.length : newline + 1;
      let endsIn: "newline" | "nul" | undefined = newline < 0 ? undefined : "newline";
      if (nextNul >= 0 && nextNul < stop) {
        stop = endOfNuls(chunk, nextNul);
        endsIn = "nul";
        nextNul = chunk.indexOf(NUL, stop);
      }
      this.#gather(chunk, start, stop);
      if (endsIn !== undefined) yield this.#finish(endsIn);
      start = stop;
    }
    // Whoever reads may fill the same memory again.
    this.#head = Buffer.from(this.#head);
  }

  /** The last line, where the file does not end in a line's end. */
  *end(): Generator<Line, void> {
    if (this.#position > this.#offset) yield this.#finish("file");
  }

  #gather(chunk: Buffer, start: number, stop: number): void {
    this.#position += stop - start;
    const room = LINE_HEAD_BYTES_MAX - this.#head.length;
    if (room <= 0) return;
    const piece = chunk.subarray(start, Math.min(stop, start + room));
    this.#head = this.#head.length === 0 ? piece : Buffer.concat([this.#head, piece]);
  }

  #finish(endsIn: Line["endsIn"]): Line {
    const line = { offset: this.#offset, end: this.#position, head: this.#head, endsIn };
    this.#offset = this.#position;
    this.#head = EMPTY;
    return line;
  }
}

function endOfNuls(chunk: Buffer, start: number): number {
  let end = start;
  while (end < chunk.length && chunk[end] === NUL) end++;
  return end;
}
