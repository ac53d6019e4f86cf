/** The lines of standard input, one by one, in bounded memory: for commands that ask about each. */
import { commandIo } from "./command-io.js";

const LINE_LENGTH_MAX = 1_000_000;

/** Without their ends. A last line without an end counts. @throws RangeError for a line of more than a million characters. */
export async function* inputLines(): AsyncGenerator<string> {
  let begun = "";
  let lineCount = 0;
  for await (const chunk of commandIo().stdin.setEncoding("utf8") as AsyncIterable<string>) {
    const lines = (begun + chunk).split("\n");
    begun = lines.pop() ?? "";
    for (const line of lines) {
      lineCount++;
      yield line.replace(/\r$/, "");
    }
    if (begun.length > LINE_LENGTH_MAX) throw new RangeError(`line ${lineCount + 1} of standard input has no end`);
  }
  if (begun !== "") yield begun;
}
