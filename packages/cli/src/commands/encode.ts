/** `encode`: parts to call numbers, offline. */
import { type CallNumberParts, encodeCallNumber, RUN_MAX, SEQUENCE_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { Command } from "commander";
import { NOT_QUICK, pipeLines } from "../input.js";
import { partsAsJson, readDecimal, writeAscii } from "../number-bytes.js";
import { print } from "../output.js";

const COMMA = 0x2c;

export function encodeCommand(): Command {
  return new Command("encode")
    .summary("call number of a version, run and sequence (offline)")
    .description(
      "Writes the call number of a version (0-7), run (0-1073741823) and sequence (0-16383). Needs no coordinator.",
    )
    .argument("<version>", "or - to read lines version,run,sequence from standard input")
    .argument("[run]")
    .argument("[sequence]")
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber encode 0 99 345\n  2VznWE2i\n  $ printf '0,99,345\\n' | callnumber encode -\n  2VznWE2i",
    )
    .action(
      async (version: string, run: string | undefined, sequence: string | undefined, { json }: { json?: boolean }) => {
        const answer = json ? asJson : asText;
        if (version !== "-") return print(answer(partsIn([version, run, sequence])));
        return pipeLines({
          quick: json ? () => NOT_QUICK : quick,
          answer: (line) => answer(partsIn(line.split(","))),
        });
      },
    );
}

function asText(parts: CallNumberParts): string {
  return encodeCallNumber(parts);
}

function asJson(parts: CallNumberParts): string {
  return partsAsJson(encodeCallNumber(parts), parts);
}

/** @throws RangeError for anything but three numbers within their limits. */
function partsIn(texts: readonly (string | undefined)[]): CallNumberParts {
  const [version, run, sequence] = texts;
  if (texts.length !== 3 || version === undefined || run === undefined || sequence === undefined) {
    throw new RangeError("encode takes three numbers: version run sequence (in lines: version,run,sequence)");
  }
  return {
    version: numberIn("version", version, VERSION_MAX),
    run: numberIn("run", run, RUN_MAX),
    sequence: numberIn("sequence", sequence, SEQUENCE_MAX),
  };
}

function numberIn(name: string, text: string, max: number): number {
  const isWhole = /^\s*\d{1,15}\s*$/.test(text);
  if (!isWhole || Number(text) > max)
    throw new RangeError(`${name} must be a whole number from 0 to ${max}, not ${JSON.stringify(text)}`);
  return Number(text);
}

/** As `asText(partsIn(…))`, for a line that is three numbers within their limits and nothing else. */
function quick(bytes: Uint8Array, begin: number, end: number, out: Uint8Array, at: number): number {
  const versionEnd = commaIn(bytes, begin, end);
  const runEnd = commaIn(bytes, versionEnd + 1, end);
  const version = readDecimal(bytes, begin, versionEnd);
  const run = readDecimal(bytes, versionEnd + 1, runEnd);
  const sequence = readDecimal(bytes, runEnd + 1, end);
  const isUsual = version >= 0 && run >= 0 && sequence >= 0;
  if (!isUsual || version > VERSION_MAX || run > RUN_MAX || sequence > SEQUENCE_MAX) return NOT_QUICK;
  return writeAscii(encodeCallNumber({ version, run, sequence }), out, at);
}

/** Returns `end` without a comma. */
function commaIn(bytes: Uint8Array, begin: number, end: number): number {
  let place = begin;
  while (place < end && bytes[place] !== COMMA) place++;
  return place;
}
