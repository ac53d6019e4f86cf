/**
 * Standard input to standard output, a line for a line, as fast as a pipe takes it: bytes come and bytes go, one write for all
 * lines of a chunk. A bad line is answered on standard error with its number; the rest goes on, and the exit code tells.
 */
import { escapeLines, withoutTokens } from "../text.js";
import { running } from "./command-io.js";

/** What a `quick` answers when the line is none of its own. */
export const NOT_QUICK = -1;
/** What `quick` may write for one line: more than the longest answer has. */
const QUICK_BYTES_MAX = 127;

const LINE_BYTES_MAX = 1_000_000;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const UTF8_BYTES_MAX = 3;

/** How the lines of a command are answered. */
export interface LineAnswers {
  /**
   * For the usual line, which is good: writes its answer into `out` from `at` on, at most 127 bytes, and returns where that
   * ends; or `NOT_QUICK` when the line, `bytes` from `begin` to `end`, is for `answer`. Never throws.
   */
  readonly quick: (bytes: Uint8Array, begin: number, end: number, out: Uint8Array, at: number) => number;
  /** For any line. Throws when it is bad. */
  readonly answer: (line: string) => string;
}

interface Answered {
  /** The answers to the good lines, each with its line feed. */
  readonly answers: Uint8Array;
  /** What is wrong with the bad ones, a line each. */
  readonly complaints: string;
  readonly lineCount: number;
}

/**
 * Answers each line of standard input. A last line without an end counts; an empty last line does not.
 * @throws RangeError for a line of more than a million bytes, when all lines before it are answered.
 */
export async function pipeLines(how: LineAnswers): Promise<void> {
  const command = running();
  const { stdin, stderr } = command.io;
  let lineCount = 0;
  const pass = async (lines: Buffer): Promise<void> => {
    const answered = answerLines(lines, lineCount, how);
    lineCount += answered.lineCount;
    if (answered.complaints !== "") {
      command.exitCode = 1;
      stderr.write(escapeLines(withoutTokens(answered.complaints)));
    }
    if (answered.answers.length > 0) await command.write(answered.answers);
  };
  /** A line whose end has not come yet. */
  let begun: Buffer = Buffer.alloc(0);
  for await (const chunk of stdin as AsyncIterable<Buffer>) {
    const bytes = begun.length === 0 ? chunk : Buffer.concat([begun, chunk]);
    const end = bytes.lastIndexOf(LINE_FEED) + 1;
    if (end > 0) await pass(bytes.subarray(0, end));
    begun = bytes.subarray(end);
    if (begun.length > LINE_BYTES_MAX) throw new RangeError(`line ${lineCount + 1} of standard input has no end`);
  }
  if (begun.length > 0) await pass(Buffer.concat([begun, Buffer.of(LINE_FEED)]));
}

/** `bytes` end with a line feed; `before` is the number of lines that came before them. */
function answerLines(bytes: Buffer, before: number, { quick, answer }: LineAnswers): Answered {
  let out: Buffer = Buffer.allocUnsafe(2 * bytes.length + QUICK_BYTES_MAX + 1);
  let at = 0;
  let complaints = "";
  let lineCount = 0;
  for (let begin = 0; begin < bytes.length; ) {
    let next = begin;
    // Lines are short: looking at each byte is faster than a search for each line.
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
        complaints += `line ${before + lineCount}: ${(error as Error).message}\n`;
      }
    }
    if (answerEnd !== NOT_QUICK) {
      out[answerEnd] = LINE_FEED;
      at = answerEnd + 1;
    }
    begin = next + 1;
  }
  return { answers: out.subarray(0, at), complaints, lineCount };
}

function withRoom(out: Buffer, at: number, byteCount: number): Buffer {
  if (at + byteCount <= out.length) return out;
  const larger = Buffer.allocUnsafe(2 * (at + byteCount));
  out.copy(larger, 0, 0, at);
  return larger;
}
