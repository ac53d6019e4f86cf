/** `… | head` closes the pipe while we still write: that is no failure. */
import process, { stdout } from "node:process";

export function endQuietlyWhenReaderLeaves(): void {
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
}
