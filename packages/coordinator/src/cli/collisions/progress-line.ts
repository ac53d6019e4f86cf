/** One line on a terminal that says what is under way, and is gone when something else is printed. Elsewhere nothing. */
import { commandIo } from "../command-io.js";

/** As in the manual of xterm. */
const ERASE_LINE = "\r\u001b[K";

export interface ProgressLine {
  say(text: string): void;
  clear(): void;
}

export function progressLine(): ProgressLine {
  const { stderr } = commandIo();
  if (!stderr.isTTY) return { say: () => {}, clear: () => {} };
  return {
    say: (text) => void stderr.write(`${ERASE_LINE}${text.slice(0, (stderr.columns ?? 80) - 1)}`),
    clear: () => void stderr.write(ERASE_LINE),
  };
}
