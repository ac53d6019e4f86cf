/** The lines of an mbox, from its bytes as they stream by. Keeps at most the first bytes of a line, however long it is. */

const NUL = 0x00;
const NEWLINE = 0x0a;
const FROM_ = Buffer.from("From ");

export const FROM_BYTES = FROM_.length;

/** Whether a separator may begin with these bytes, which may be none. */
export function isBeginOfFrom(bytes: Buffer): boolean {
  return FROM_.subarray(0, bytes.length).equals(bytes);
}

export function startsWithFrom(bytes: Buffer): boolean {
  return bytes.subarray(0, FROM_.length).equals(FROM_);
}

/** RFC 5322 allows lines of 998 bytes; the splitter needs no byte after them. */
const LINE_HEAD_BYTES_MAX = 1000;
const EMPTY = Buffer.alloc(0);

export interface Line {
  /** Where the line begins, in bytes from the start of the file. */
  readonly offset: number;
  /** Where the next line begins. */
  readonly end: number;
  /** The line's first bytes, its end included where it is short enough. */
  readonly head: Buffer;
  readonly endsIn: "newline" | "nul" | "file";
}

/**
 * Turns bytes into lines. Keeps at most `LINE_HEAD_BYTES_MAX` bytes of a line, however long the line is. A run of NUL
 * bytes ends a line too: it is the hole that a crash leaves in a file, and a line may begin right after it.
 */
export class LineReader {
  #offset: number;
  #position: number;
  #head: Buffer = EMPTY;
  readonly #mayLeaveOut: () => boolean;

  /** `mayLeaveOut`: whether only lines that begin with `From `, and the lines before them, are wanted from here. */
  constructor(start = 0, mayLeaveOut = () => false) {
    this.#offset = start;
    this.#position = start;
    this.#mayLeaveOut = mayLeaveOut;
  }

  /** Yields the lines that `chunk`, the file's next bytes, completes. Consume them all before the next `push`. */
  *push(chunk: Buffer): Generator<Line, void> {
    let nextNul = chunk.indexOf(NUL);
    let newline = chunk.indexOf(NEWLINE);
    const ends = new SeparatorSearch(chunk);
    for (let start = 0; start < chunk.length; ) {
      if (this.#head.length === 0 && this.#mayLeaveOut()) {
        const next = ends.lineBefore(start);
        if (nextNul < 0 || nextNul >= next) {
          this.#position += next - start;
          this.#offset = this.#position;
          start = next;
        }
      }
      // Searched for only when passed: in a file of NULs each search would read to the end of the chunk.
      if (newline >= 0 && newline < start) newline = chunk.indexOf(NEWLINE, start);
      let stop = newline < 0 ? chunk.length : newline + 1;
      let endsIn: "newline" | "nul" | undefined = newline < 0 ? undefined : "newline";
      if (nextNul >= 0 && nextNul < stop) {
        stop = endOfNuls(chunk, nextNul);
        endsIn = "nul";
        nextNul = chunk.indexOf(NUL, stop);
      }
      this.#append(chunk, start, stop);
      if (endsIn !== undefined) yield this.#finish(endsIn);
      start = stop;
    }
    // The caller may reuse the chunk's memory.
    this.#head = Buffer.from(this.#head);
  }

  /** Yields the last line, where the file does not end in a newline. */
  *end(): Generator<Line, void> {
    if (this.#position > this.#offset) yield this.#finish("file");
  }

  #append(chunk: Buffer, start: number, stop: number): void {
    this.#position += stop - start;
    const bytesLeft = LINE_HEAD_BYTES_MAX - this.#head.length;
    if (bytesLeft <= 0) return;
    const piece = chunk.subarray(start, Math.min(stop, start + bytesLeft));
    this.#head = this.#head.length === 0 ? piece : Buffer.concat([this.#head, piece]);
  }

  #finish(endsIn: Line["endsIn"]): Line {
    const line = { offset: this.#offset, end: this.#position, head: this.#head, endsIn };
    this.#offset = this.#position;
    this.#head = EMPTY;
    return line;
  }
}

const FROM_LINE = Buffer.from("\nFrom ");

/** Finds in a chunk where text ends that has no separator. */
class SeparatorSearch {
  readonly #chunk: Buffer;
  /** Where the newline before the next `From ` is, or the last one of the chunk. */
  #newline = -1;

  constructor(chunk: Buffer) {
    this.#chunk = chunk;
  }

  /** `start`: where a line begins. Returns where the line begins that is before the next separator, or the last whole one of the chunk. */
  lineBefore(start: number): number {
    const chunk = this.#chunk;
    if (startsWithFrom(chunk.subarray(start, start + FROM_.length))) return start;
    if (this.#newline < start) {
      const found = chunk.indexOf(FROM_LINE, start);
      this.#newline = found < 0 ? chunk.lastIndexOf(NEWLINE) : found;
    }
    return this.#newline <= start ? start : Math.max(chunk.lastIndexOf(NEWLINE, this.#newline - 1) + 1, start);
  }
}

function endOfNuls(chunk: Buffer, start: number): number {
  let end = start;
  while (end < chunk.length && chunk[end] === NUL) end++;
  return end;
}
