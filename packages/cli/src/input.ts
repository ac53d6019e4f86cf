/** Standard input, line by line, in bounded memory. */
import { escapeLines } from "@callnumber/coordinator/internal/text";
import { invocation } from "./invocation.js";
import { failureLine } from "./output.js";

const LINE_LENGTH_MAX = 1_000_000;
const STANDARD_INPUT = "standard input";

/** Returns the lines of standard input, as `linesOf`. */
export function inputLines(): AsyncGenerator<string> {
  return linesOf(inputText(), STANDARD_INPUT);
}

function inputText(): AsyncIterable<string> {
  return invocation().io.stdin.setEncoding("utf8") as AsyncIterable<string>;
}

/**
 * Returns lines without their ends. A last line without an end counts. `name` is what messages call the source.
 * @throws RangeError for a line of more than a million characters.
 */
export async function* linesOf(chunks: AsyncIterable<string>, name: string): AsyncGenerator<string> {
  for await (const lines of batchesOf(chunks, name)) yield* lines;
}

/** Returns the lines that end in each chunk, as `linesOf`. */
export async function* batchesOf(chunks: AsyncIterable<string>, name: string): AsyncGenerator<readonly string[]> {
  let begun = "";
  let lineCount = 0;
  for await (const chunk of chunks) {
    const lines = (begun + chunk).split(/\r?\n/);
    begun = lines.pop() as string;
    lineCount += lines.length;
    if (lines.length > 0) yield lines;
    if (begun.length > LINE_LENGTH_MAX) throw new RangeError(`line ${lineCount + 1} of ${name} has no end`);
  }
  if (begun !== "") yield [begun.replace(/\r$/, "")];
}

/**
 * Answers each line of standard input on standard output, as soon as it is whole. A line for which `answer` throws is reported on
 * standard error with its number; the rest is answered, and the exit code is 1.
 * @throws RangeError for a line of more than a million characters, when all lines before it are answered.
 */
export async function answerLines(answer: (line: string) => string): Promise<void> {
  const command = invocation();
  let lineCount = 0;
  for await (const lines of batchesOf(inputText(), STANDARD_INPUT)) {
    let [output, errors] = ["", ""];
    for (const line of lines) {
      lineCount++;
      try {
        output += `${answer(line)}\n`;
      } catch (error) {
        errors += command.asJson
          ? `${failureLine(error, { line: lineCount })}\n`
          : escapeLines(`line ${lineCount}: ${(error as Error).message}\n`);
      }
    }
    if (errors !== "") {
      command.exitCode = 1;
      command.io.stderr.write(errors);
    }
    if (output !== "") await command.write(output);
  }
}
