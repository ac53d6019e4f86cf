/** `… | head` closes the pipe while we still write: that is no failure. A disk that is full is one. */
import process, { stderr, stdout } from "node:process";

/** @param inWords tells any other failure of standard output. */
export function endQuietlyWhenReaderLeaves(inWords: (error: Error) => string): void {
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    stderr.write(inWords(error));
    process.exit(1);
  });
}
