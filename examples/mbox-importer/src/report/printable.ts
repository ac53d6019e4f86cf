/** Text of strangers, made fit for a terminal: a subject may hold anything, also what would move the cursor or ring a bell. */

/** Control, format, surrogate and private characters, and the separators that break lines. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]+/gu;

/** The text on one line, with a blank for each run of unprintable characters, cut to `lengthMax` UTF-16 units. */
export function printable(text: string, lengthMax = 200): string {
  const line = text.replace(UNPRINTABLE, " ");
  if (line.length <= lengthMax) return line;
  // Cutting may leave half of a character at the end.
  return `${line.slice(0, lengthMax - 1).replace(/\p{Cs}$/u, "")}…`;
}
