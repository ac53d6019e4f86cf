/**
 * Something that is looked at again and again. On a terminal each look takes the place of the one before, on a screen of its own,
 * and the last one stays when it ends; elsewhere each stands behind the one before.
 */
import { setTimeout as delay } from "node:timers/promises";
import { commandIo, running } from "./command-io.js";
import { instant, printPainted } from "./print.js";

export interface Watch {
  /** What is to be shown, with our colours: what others chose was made visible before. */
  readonly look: () => Promise<string>;
  readonly everyMs: number;
  readonly asJson: boolean;
  readonly signal: AbortSignal;
}

/** Names as in the manual of xterm. */
const ESCAPES = {
  enterScreen: "\u001b[?1049h\u001b[?25l",
  leaveScreen: "\u001b[?25h\u001b[?1049l",
  home: "\u001b[H",
  eraseToEndOfLine: "\u001b[K",
  eraseBelow: "\u001b[J",
} as const;

/** Resolves when the signal comes. */
export async function watched({ look, everyMs, asJson, signal }: Watch): Promise<void> {
  const onScreen = commandIo().stdout.isTTY === true && !asJson;
  const leave = onScreen ? enterScreen() : () => {};
  let last = "";
  try {
    while (!signal.aborted) {
      last = await look();
      if (signal.aborted) break;
      if (onScreen) redraw(`${last}\n\nlooked at ${instant(Date.now())}, every ${everyMs / 1_000} s; Ctrl-C ends`);
      else printPainted(asJson ? last : `${instant(Date.now())}  ${last}`);
      await delay(everyMs, undefined, { signal }).catch(() => {});
    }
  } finally {
    leave();
  }
  if (onScreen) printPainted(last);
}

/** Answers what leaves it; a command that is ended by something else leaves it, too. */
function enterScreen(): () => void {
  const command = running();
  const { stdout } = command.io;
  stdout.write(ESCAPES.enterScreen);
  const leave = () => void stdout.write(ESCAPES.leaveScreen);
  const forget = command.onEnd(leave);
  return () => {
    forget();
    leave();
  };
}

/** Over what stands there, and without a blank moment in between. */
function redraw(text: string): void {
  const lines = text.split("\n").map((line) => line + ESCAPES.eraseToEndOfLine);
  commandIo().stdout.write(ESCAPES.home + lines.join("\n") + ESCAPES.eraseBelow);
}
