/**
 * Standard input to standard output, a line for a line, as fast as a pipe takes it. A bad line is answered on standard error
 * with its number; the rest goes on, and the exit code tells.
 */
import { once } from "node:events";
import process, { stderr, stdin, stdout } from "node:process";

/**
 * Answers each line of standard input by `answer`, which throws when the line is bad. A last line without an end counts; an
 * empty last line does not.
 */
export async function pipeLines(answer: (line: string) => string): Promise<void> {
  let lineNumber = 0;
  let rest = "";
  const answers = (lines: readonly string[]): string => {
    let text = "";
    for (const line of lines) {
      lineNumber++;
      try {
        text += `${answer(line.endsWith("\r") ? line.slice(0, -1) : line)}\n`;
      } catch (error) {
        process.exitCode = 1;
        stderr.write(`line ${lineNumber}: ${(error as Error).message}\n`);
      }
    }
    return text;
  };
  stdin.setEncoding("utf8");
  for await (const chunk of stdin) {
    const lines = (rest + (chunk as string)).split("\n");
    rest = lines.pop() as string;
    if (rest.length > 1_000_000) throw new RangeError(`line ${lineNumber + 1} of standard input has no end`);
    if (!stdout.write(answers(lines))) await once(stdout, "drain");
  }
  if (rest !== "") stdout.write(answers([rest]));
}
