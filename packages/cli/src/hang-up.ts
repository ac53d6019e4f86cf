/**
 * What SIGHUP means to `serve` beside "read your files again", which whoever has such files listens for itself: a terminal that closed
 * ends it in order, and without files and terminal it is told of and changes nothing. Without a listener it would end the process.
 */
import { closeSync } from "node:fs";
import { isatty } from "node:tty";
import type { Log } from "@callnumber/coordinator";
import { running } from "./command-io.js";

export interface HangUpOptions {
  /** There are files, of tokens or of TLS, that somebody else reads again on SIGHUP. */
  readonly rereads: boolean;
  readonly log: Log;
  readonly say: (text: string) => void;
}

/** From now to the end of the process. Resolves to the signal's name when it is a wish to stop, and never otherwise. */
export function untilHungUp({ rereads, log, say }: HangUpOptions): Promise<string> {
  const command = running();
  const { terminals = [] } = command.io;
  command.onEnd(() => goneOf(terminals).forEach(letGoOf));
  return new Promise((resolve) => {
    // Never an order to stop at once: kernel and shell both send one when a terminal closes.
    command.onSignal("SIGHUP", () => {
      if (goneOf(terminals).length > 0 || (terminals.length > 0 && !rereads)) resolve("SIGHUP");
      else if (!rereads) {
        log.warn({}, "hang_up_ignored");
        say("SIGHUP: there is neither a tokens file nor a certificate to be read again; nothing was done");
      }
    });
  });
}

/** What hung up is no terminal any more. */
function goneOf(terminals: readonly number[]): readonly number[] {
  return terminals.filter((file) => !isatty(file));
}

/** At its end Node gives each terminal its old settings back, and aborts, with a core file perhaps, where it is gone. */
function letGoOf(file: number): void {
  try {
    closeSync(file);
  } catch {
    // Closed already: then Node passes it over.
  }
}
