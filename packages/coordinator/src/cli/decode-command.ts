/** `decode`: call numbers to their parts, offline. */

import process, { stderr } from "node:process";
import { CALL_NUMBER_LENGTH, type CallNumberParts, decodeCallNumber } from "@callnumber/protocol/codec";
import { Command } from "commander";
import { writeDecimal } from "./decimal-bytes.js";
import { NOT_QUICK, pipeLines } from "./pipe-lines.js";
import { print } from "./print.js";

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
        return pipeLines({ quick: json ? () => NOT_QUICK : quick, answer: (line) => answer(line, json) });
      }
      for (const callNumber of callNumbers) {
        try {
          print(answer(callNumber, json));
        } catch (error) {
          process.exitCode = 1;
          stderr.write(`${(error as Error).message}\n`);
        }
      }
    });
}

/** As `answer` without JSON, of a line that is a call number. */
function quick(bytes: Uint8Array, begin: number, end: number, out: Uint8Array, at: number): number {
  const parts = end - begin === CALL_NUMBER_LENGTH ? partsAt(bytes, begin) : undefined;
  if (parts === undefined) return NOT_QUICK;
  const afterVersion = writeDecimal(parts.version, out, at);
  out[afterVersion] = COMMA;
  const afterRun = writeDecimal(parts.run, out, afterVersion + 1);
  out[afterRun] = COMMA;
  return writeDecimal(parts.sequence, out, afterRun + 1);
}

function partsAt(bytes: Uint8Array, begin: number): CallNumberParts | undefined {
  // Spelt out: a loop, or a decoder of text, takes longer than the decoding.
  const at = (place: number) => bytes[begin + place] as number;
  try {
    return decodeCallNumber(String.fromCharCode(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)));
  } catch {
    // Said by `answer`, in its own words.
    return undefined;
  }
}

function answer(callNumber: string, json: boolean | undefined): string {
  const { version, run, sequence } = decodeCallNumber(callNumber);
  return json ? JSON.stringify({ callNumber, version, run, sequence }) : `${version},${run},${sequence}`;
}
