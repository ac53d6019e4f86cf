/**
 * A reader that has seen enough and goes (`| head`) is no reason to leave work half done: what would have been printed is lost,
 * nothing else.
 */
export function ignoreClosedPipes(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
    });
  }
}
