/** Lines of text, one by one, in bounded memory: for commands that ask about each. */
import { commandIo } from "./command-io.js";

const LINE_LENGTH_MAX = 1_000_000;

/** The lines of standard input, as `linesOf`. */
export function inputLines(): AsyncGenerator<string> {
  return linesOf(commandIo().stdin.setEncoding("utf8") as AsyncIterable<string>, "standard input");
}

/**
 * Without their ends. A last line without an end counts. `name` is what messages call the source.
 * @throws RangeError for a line of more than a million characters.
 */
export async function* linesOf(chunks: AsyncIterable<string>, name: string): AsyncGenerator<string> {
  let begun = "";
  let lineCount = 0;
  for await (const chunk of chunks) {
    const lines = (begun + chunk).split("\n");
    begun = lines.pop() ?? "";
    for (const line of lines) {
      lineCount++;
      yield line.replace(/\r$/, "");
    }
    if (begun.length > LINE_LENGTH_MAX) throw new RangeError(`line ${lineCount + 1} of ${name} has no end`);
  }
  if (begun !== "") yield begun;
}
