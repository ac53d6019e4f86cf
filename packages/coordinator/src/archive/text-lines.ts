/** A file line by line: call numbers, or the events of a log. Lines end with LF or CRLF; the last may have no end. */
import { shown } from "./shown.js";

/** Takes one line after the other: the bytes from `start` to before `end`, without the line feed. */
export interface LineTaker {
  take(bytes: Buffer, start: number, end: number, line: number): void;
  takeMalformed(line: number, why: () => string): void;
}

/** No line with a call number or a lease in it is longer; what is longer is passed over to its end, not kept. */
const LINE_BYTES_MAX = 65_536;
const LINE_FEED = 0x0a;

/** Reads all lines into the scan. The chunks may be cut anywhere. */
export async function scanLines(chunks: AsyncIterable<Buffer>, scan: LineTaker): Promise<void> {
  let lineNumber = 0;
  /** What came of a line whose end has not come yet. */
  let begun: Buffer[] = [];
  let begunBytes = 0;

  const keep = (piece: Buffer) => {
    // A copy: the piece would hold its whole chunk in memory.
    if (begunBytes <= LINE_BYTES_MAX) begun.push(Buffer.from(piece));
    begunBytes += piece.length;
  };
  const takeLine = (bytes: Buffer, start: number, end: number, lineBytes: number) => {
    lineNumber++;
    if (lineBytes > LINE_BYTES_MAX) scan.takeMalformed(lineNumber, () => tooLong(bytes.subarray(start, end)));
    else scan.take(bytes, start, end, lineNumber);
  };
  const takeBegun = () => {
    const line = Buffer.concat(begun);
    takeLine(line, 0, line.length, begunBytes);
    begun = [];
    begunBytes = 0;
  };

  for await (const chunk of chunks) {
    let start = 0;
    if (begunBytes > 0) {
      const end = chunk.indexOf(LINE_FEED);
      keep(chunk.subarray(0, end < 0 ? chunk.length : end));
      if (end < 0) continue;
      takeBegun();
      start = end + 1;
    }
    const { length } = chunk;
    // Lines are short: looking at each byte is faster than a search for each line.
    for (let end = start; end < length; end++) {
      if (chunk[end] !== LINE_FEED) continue;
      takeLine(chunk, start, end, end - start);
      start = end + 1;
    }
    if (start < length) keep(chunk.subarray(start));
  }
  if (begunBytes > 0) takeBegun();
}

function tooLong(line: Buffer): string {
  return `it is longer than ${LINE_BYTES_MAX} bytes, and begins with ${shown(line.toString("utf8", 0, 100))}`;
}
