/** Signals to a command that goes on until it is stopped. */
import { closeSync } from "node:fs";
import { isatty } from "node:tty";
import type { Log } from "@callnumber/coordinator";
import { invocation } from "./invocation.js";

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/** Resolves to the first signal that asks to stop. The second one ends the process at once. */
export function untilStopped(): Promise<string> {
  const command = invocation();
  return new Promise((resolve) => {
    let isStopping = false;
    for (const [signal, exitCode] of Object.entries(EXIT_CODES)) {
      command.onSignal(signal, () => {
        if (isStopping) command.leave(exitCode);
        isStopping = true;
        resolve(signal);
      });
    }
  });
}

export interface HangUpOptions {
  /** There are files, of tokens or TLS, that are reloaded on SIGHUP by other listeners. */
  readonly reloads: boolean;
  readonly log: Log;
  readonly printError: (text: string) => void;
}

/**
 * Listens for SIGHUP to the end of the process, which it would end without a listener. A terminal that closed ends the command in
 * order; without terminal and files the signal is logged. Resolves to the signal's name when it is a request to stop, else never.
 */
export function untilHungUp({ reloads, log, printError }: HangUpOptions): Promise<string> {
  const command = invocation();
  const { terminals = [] } = command.io;
  const closed = () => terminals.filter((file) => !isatty(file));
  command.onEnd(() => closed().forEach(closeDescriptor));
  return new Promise((resolve) => {
    // Never a request to stop at once: kernel and shell both send the signal when a terminal closes.
    command.onSignal("SIGHUP", () => {
      if (closed().length > 0 || (terminals.length > 0 && !reloads)) resolve("SIGHUP");
      else if (!reloads) {
        log.warn({}, "sighup_ignored");
        printError("SIGHUP: there is neither a tokens file nor a certificate to be read again; nothing was done");
      }
    });
  });
}

/** At its end, Node restores the settings of each terminal, and aborts, perhaps with a core file, where that is gone. */
function closeDescriptor(file: number): void {
  try {
    closeSync(file);
  } catch {
    // Closed already: then Node skips it.
  }
}
