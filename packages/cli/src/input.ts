/** Standard input, line by line: as text, or straight from bytes to bytes, as fast as a pipe takes them. */
import { escapeLines } from "@callnumber/coordinator/text";
import { commandIo, running } from "./command-io.js";

const LINE_LENGTH_MAX = 1_000_000;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const UTF8_BYTES_MAX = 3;

/** Returns the lines of standard input, as `linesOf`. */
export function inputLines(): AsyncGenerator<string> {
  return linesOf(commandIo().stdin.setEncoding("utf8") as AsyncIterable<string>, "standard input");
}

/**
 * Returns lines without their ends, in bounded memory. A last line without an end counts. `name` is what messages call the source.
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

/** What `quick` returns for a line that it leaves to `answer`. */
export const NOT_QUICK = -1;
/** The most that `quick` may write for one line: more than the longest answer has. */
const QUICK_BYTES_MAX = 127;

/** How a command answers each line. */
export interface LineAnswers {
  /**
   * For the usual line: writes its answer into `out` from `at` on, at most 127 bytes, and returns where that ends. Returns
   * `NOT_QUICK` when the line, `bytes` from `begin` to `end`, is for `answer`. Never throws.
   */
  readonly quick: (bytes: Uint8Array, begin: number, end: number, out: Uint8Array, at: number) => number;
  /** For any line. Throws when it is bad. */
  readonly answer: (line: string) => string;
}

/**
 * Answers each line of standard input on standard output. A bad line is reported on standard error with its number; the rest goes on,
 * and the exit code is 1. A last line without an end counts; an empty last line does not.
 * @throws RangeError for a line of more than a million bytes, when all lines before it are answered.
 */
export async function pipeLines(answers: LineAnswers): Promise<void> {
  const command = running();
  const { stdin, stderr } = command.io;
  let lineCount = 0;
  const pass = async (lines: Buffer): Promise<void> => {
    const answered = answerLines(lines, lineCount, answers);
    lineCount += answered.lineCount;
    if (answered.errors !== "") {
      command.exitCode = 1;
      stderr.write(escapeLines(answered.errors));
    }
    if (answered.output.length > 0) await command.write(answered.output);
  };
  /** A line whose end has not come yet. */
  let begun: Buffer = Buffer.alloc(0);
  for await (const chunk of stdin as AsyncIterable<Buffer>) {
    const bytes = begun.length === 0 ? chunk : Buffer.concat([begun, chunk]);
    const end = bytes.lastIndexOf(LINE_FEED) + 1;
    if (end > 0) await pass(bytes.subarray(0, end));
    begun = bytes.subarray(end);
    if (begun.length > LINE_LENGTH_MAX) throw new RangeError(`line ${lineCount + 1} of standard input has no end`);
  }
  if (begun.length > 0) await pass(Buffer.concat([begun, Buffer.of(LINE_FEED)]));
}

interface AnsweredLines {
  /** The answers to the good lines, each with its line feed. */
  readonly output: Uint8Array;
  /** A line for each bad one. */
  readonly errors: string;
  readonly lineCount: number;
}

/** `bytes` end with a line feed. `before`: the number of lines that came before them. */
function answerLines(bytes: Buffer, before: number, { quick, answer }: LineAnswers): AnsweredLines {
  let out: Buffer = Buffer.allocUnsafe(2 * bytes.length + QUICK_BYTES_MAX + 1);
  let at = 0;
  let errors = "";
  let lineCount = 0;
  for (let begin = 0; begin < bytes.length; ) {
    let next = begin;
    // Lines are short: reading each byte is faster than a search for each line.
    while (bytes[next] !== LINE_FEED) next++;
    const end = next > begin && bytes[next - 1] === CARRIAGE_RETURN ? next - 1 : next;
    lineCount++;
    out = withRoom(out, at, QUICK_BYTES_MAX + 1);
    let answerEnd = quick(bytes, begin, end, out, at);
    if (answerEnd === NOT_QUICK) {
      try {
        const text = answer(bytes.toString("utf8", begin, end));
        out = withRoom(out, at, UTF8_BYTES_MAX * text.length + 1);
        answerEnd = at + out.write(text, at);
      } catch (error) {
        errors += `line ${before + lineCount}: ${(error as Error).message}\n`;
      }
    }
    if (answerEnd !== NOT_QUICK) {
      out[answerEnd] = LINE_FEED;
      at = answerEnd + 1;
    }
    begin = next + 1;
  }
  return { output: out.subarray(0, at), errors, lineCount };
}

function withRoom(out: Buffer, at: number, byteCount: number): Buffer {
  if (at + byteCount <= out.length) return out;
  const larger = Buffer.allocUnsafe(2 * (at + byteCount));
  out.copy(larger, 0, 0, at);
  return larger;
}
