/** `… | head` closes the pipe while we still write: that is no failure. A disk that is full is one. */
import process, { stderr, stdout } from "node:process";
import { failureOf } from "./failure.js";

export function endQuietlyWhenReaderLeaves(asJson: boolean): void {
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    stderr.write(failureOf(error, asJson));
    process.exit(1);
  });
}
