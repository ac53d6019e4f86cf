/** Helpers for everything that is written to a terminal. */
import type { ErrorDetails } from "./errors.js";

/** Control, format, surrogate and private characters, and the separators that break lines. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]+/gu;

/**
 * Makes text from untrusted mail safe to print: one line, with a blank for each run of unprintable characters, cut to
 * `lengthMax` UTF-16 units.
 */
export function printable(text: string, lengthMax = 200): string {
  const line = text.replace(UNPRINTABLE, " ");
  if (line.length <= lengthMax) return line;
  // A cut may leave half of a character at the end.
  return `${line.slice(0, lengthMax - 1).replace(/\p{Cs}$/u, "")}…`;
}

/** Lines for a narrower terminal, or one of unknown width, are not broken. */
const COLUMNS_MIN = 20;
/** Less room than this behind a column of a table would be one word a line. */
const TEXT_COLUMNS_MIN = 16;

/**
 * Breaks the lines of a text at blanks, so that they fit that many columns. A longer word stays whole: it may be a path to
 * copy. The rest of a line begins under its text: in a table, under the second column.
 */
export function wrapped(text: string, columns: number): string {
  if (!(columns >= COLUMNS_MIN)) return text;
  const lines = text.split("\n").map((line) => (line.length <= columns ? line : wrappedLine(line, columns)));
  return lines.join("\n");
}

function wrappedLine(line: string, columns: number): string {
  const column = /^ *\S.*? {2,}/.exec(line)?.[0].length ?? columns;
  const start = columns - column < TEXT_COLUMNS_MIN ? line.search(/\S|$/) : column;
  const width = columns - start;
  const pieces = line.slice(start).match(new RegExp(`\\S{${width},}|\\S.{0,${width - 1}}(?= |$)`, "g")) ?? [];
  return line.slice(0, start) + pieces.join(`\n${" ".repeat(start)}`);
}

/** Writes the text and a newline. On a terminal, no word is broken at its edge. */
export function writeText(stream: NodeJS.WriteStream, text: string): void {
  stream.write(`${stream.isTTY ? wrapped(text, stream.columns) : text}\n`);
}

/** Returns the amount with its unit, as `1 message` or `1,522 messages`. */
export function quantity(amount: number, singular: string, plural = `${singular}s`): string {
  return `${grouped(amount)} ${amount === 1 ? singular : plural}`;
}

/** A whole number with commas. The platform's formatter takes longer to load than a small import takes. */
export function grouped(amount: number): string {
  return String(amount).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

/** Ignores a reader that closes the pipe early (`| head`): no output may stop an import halfway. A full disk is reported. */
export function ignoreClosedPipes(): void {
  process.stderr.on("error", () => {});
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") return;
    process.stderr.write(`The output can't be written: ${error.message}\n`);
    process.exitCode = 1;
  });
}

/** Writes a line for people, whatever a hostile message put into it. */
export function writeLine(text: string): void {
  writeText(process.stderr, printable(text, 500));
}

export function writeError({ code, message }: ErrorDetails): void {
  const lines = message.split("\n").map((line) => printable(line, 1000));
  writeText(process.stderr, `callnumber-archive: ${printable(code)}: ${lines.join("\n")}`);
}
