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

/** Ignores a reader that closes the pipe early (`| head`): it must not stop an import halfway. */
export function ignoreClosedPipes(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
    });
  }
}
