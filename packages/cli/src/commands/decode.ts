/** `decode`: call numbers to their parts, offline. */
import { CALL_NUMBER_LENGTH, type CallNumberParts, decodeCallNumber } from "@callnumber/protocol/codec";
import { Command } from "commander";
import { running } from "../command-io.js";
import { NOT_QUICK, pipeLines } from "../input.js";
import { partsAsJson, writeDecimal } from "../number-bytes.js";
import { print } from "../output.js";

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
      const answer = json ? asJson : asText;
      if (callNumbers.length === 1 && callNumbers[0] === "-") {
        return pipeLines({ quick: json ? () => NOT_QUICK : quick, answer });
      }
      for (const callNumber of callNumbers) {
        try {
          print(answer(callNumber));
        } catch (error) {
          const command = running();
          command.exitCode = 1;
          command.io.stderr.write(`${(error as Error).message}\n`);
        }
      }
    });
}

function asText(callNumber: string): string {
  const { version, run, sequence } = decodeCallNumber(callNumber);
  return `${version},${run},${sequence}`;
}

function asJson(callNumber: string): string {
  return partsAsJson(callNumber, decodeCallNumber(callNumber));
}

/** As `asText`, for a line that is a call number. */
function quick(bytes: Uint8Array, begin: number, end: number, out: Uint8Array, at: number): number {
  if (end - begin !== CALL_NUMBER_LENGTH) return NOT_QUICK;
  const parts = decoded(bytes, begin);
  if (parts === undefined) return NOT_QUICK;
  const afterVersion = writeDecimal(parts.version, out, at);
  out[afterVersion] = COMMA;
  const afterRun = writeDecimal(parts.run, out, afterVersion + 1);
  out[afterRun] = COMMA;
  return writeDecimal(parts.sequence, out, afterRun + 1);
}

/** Undefined for no call number: `asText` throws the reason. */
function decoded(bytes: Uint8Array, begin: number): CallNumberParts | undefined {
  // Written out: a loop, or a decoder of text, is slower than the decoding.
  const at = (place: number) => bytes[begin + place] as number;
  try {
    return decodeCallNumber(String.fromCharCode(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)));
  } catch {
    return undefined;
  }
}
