/** Helpers for everything that is written to a terminal. */

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

/** Returns the amount with its unit, as `1 message` or `1,522 messages`. */
export function quantity(amount: number, singular: string, plural = `${singular}s`): string {
  return `${amount.toLocaleString("en-US")} ${amount === 1 ? singular : plural}`;
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
