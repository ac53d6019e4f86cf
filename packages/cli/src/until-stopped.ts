/** Waits for the wish to stop. The second wish is an order: whoever sends it does not want to wait. */
import { running } from "./command-io.js";

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

export function untilStopped(): Promise<string> {
  const command = running();
  return new Promise((resolve) => {
    for (const [signal, exitCode] of Object.entries(EXIT_CODES)) {
      let isAsked = false;
      command.onSignal(signal, () => {
        if (isAsked) command.leave(exitCode);
        isAsked = true;
        resolve(signal);
      });
    }
  });
}
