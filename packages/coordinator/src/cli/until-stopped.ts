/** Waits for the wish to stop. The second wish is an order: whoever sends it does not want to wait. */
import process from "node:process";

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

export function untilStopped(): Promise<string> {
  return new Promise((resolve) => {
    for (const [signal, exitCode] of Object.entries(EXIT_CODES)) {
      process.once(signal, () => {
        process.once(signal, () => process.exit(exitCode));
        resolve(signal);
      });
    }
  });
}
