/** `decode`: call numbers to their parts, offline. */
import { CALL_NUMBER_LENGTH, type CallNumberParts, decodeCallNumber } from "@callnumber/protocol/codec";
import { Command } from "commander";
import { writeAscii, writeDecimal } from "../ascii-bytes.js";
import { running } from "../command-io.js";
import { withoutPasswords } from "../hidden-passwords.js";
import { partsAsJson } from "../parts-as-json.js";
import { NOT_QUICK, pipeLines } from "../pipe-lines.js";
import { print } from "../print.js";

const COMMA = 0x2c;

export function decodeCommand(): Command {
  return new Command("decode")
    .summary("version, run and sequence of call numbers (offline)")
    .description(
      "Prints version,run,sequence for each call number. Needs no coordinator. A text that is no call number is answered on " +
        "standard error, the others go on, and the exit code is 1.",
    )
    .argument("<callnumber...>", "call numbers, or - to read them from standard input, one a line")
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber decode 2VznWE2i\n  0,99,345\n  $ callnumber decode - < numbers.txt > parts.csv",
    )
    .action(async (callNumbers: readonly string[], { json }: { json?: boolean }) => {
      if (callNumbers.length === 1 && callNumbers[0] === "-") {
        return pipeLines({ quick: json ? quickAsJson : quick, answer: (line) => answer(line, json) });
      }
      for (const callNumber of withoutPasswords(callNumbers)) {
        try {
          print(answer(callNumber, json));
        } catch (error) {
          const command = running();
          command.exitCode = 1;
          command.io.stderr.write(`${(error as Error).message}\n`);
        }
      }
    });
}

/** As `answer` without JSON, of a line that is a call number. */
function quick(bytes: Uint8Array, begin: number, end: number, out: Uint8Array, at: number): number {
  const parts = partsOf(textAt(bytes, begin, end));
  if (parts === undefined) return NOT_QUICK;
  const afterVersion = writeDecimal(parts.version, out, at);
  out[afterVersion] = COMMA;
  const afterRun = writeDecimal(parts.run, out, afterVersion + 1);
  out[afterRun] = COMMA;
  return writeDecimal(parts.sequence, out, afterRun + 1);
}

function quickAsJson(bytes: Uint8Array, begin: number, end: number, out: Uint8Array, at: number): number {
  const text = textAt(bytes, begin, end);
  const parts = partsOf(text);
  return parts === undefined ? NOT_QUICK : writeAscii(partsAsJson(text, parts), out, at);
}

/** Eight characters, each a byte; empty when the line is of another length. */
function textAt(bytes: Uint8Array, begin: number, end: number): string {
  if (end - begin !== CALL_NUMBER_LENGTH) return "";
  // Spelt out: a loop, or a decoder of text, takes longer than the decoding.
  const at = (place: number) => bytes[begin + place] as number;
  return String.fromCharCode(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
}

/** Undefined when the text is no call number: `answer` says why, in the line's own characters. */
function partsOf(text: string): CallNumberParts | undefined {
  try {
    return decodeCallNumber(text);
  } catch {
    return undefined;
  }
}

function answer(callNumber: string, json: boolean | undefined): string {
  const parts = decodeCallNumber(callNumber);
  return json ? partsAsJson(callNumber, parts) : `${parts.version},${parts.run},${parts.sequence}`;
}
