/**
 * Undoes the quoting of mboxrd, for parsing only: what is stored are the bytes of the file.
 */

const QUOTED = Buffer.from(">From ");
const NEWLINE = 0x0a;
const QUOTE = 0x3e;

/**
 * The bytes with one `>` taken from each line that begins with any number of `>` and `From `. The same object when there
 * is no such line.
 */
export function unquoteFromLines(bytes: Buffer): Buffer {
  const kept: Buffer[] = [];
  let copied = 0;
  for (let at = bytes.indexOf(QUOTED); at >= 0; at = bytes.indexOf(QUOTED, at + QUOTED.length)) {
    let lineStart = at;
    while (lineStart > 0 && bytes[lineStart - 1] === QUOTE) lineStart--;
    if (lineStart > 0 && bytes[lineStart - 1] !== NEWLINE) continue;
    kept.push(bytes.subarray(copied, lineStart));
    copied = lineStart + 1;
  }
  if (kept.length === 0) return bytes;
  kept.push(bytes.subarray(copied));
  return Buffer.concat(kept);
}
