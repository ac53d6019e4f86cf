/** `encode`: parts to call numbers, offline. */
import { CALL_NUMBER_LENGTH, encodeCallNumber, RUN_MAX, SEQUENCE_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { Command } from "commander";
import { readDecimal } from "./decimal-bytes.js";
import { NOT_QUICK, pipeLines } from "./pipe-lines.js";
import { print } from "./print.js";

type Fields = readonly [version: number, run: number, sequence: number];

const LIMITS = [
  ["version", VERSION_MAX],
  ["run", RUN_MAX],
  ["sequence", SEQUENCE_MAX],
] as const;
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
        if (version === "-") {
          return pipeLines({
            quick: json ? () => NOT_QUICK : quick,
            answer: (line) => answer(fieldsOf(line.split(",")), json),
          });
        }
        print(answer(fieldsOf([version, run, sequence]), json));
      },
    );
}

/** As `answer` without JSON, of a line that is three numbers within their limits and nothing else. */
function quick(bytes: Uint8Array, begin: number, end: number, out: Uint8Array, at: number): number {
  const versionEnd = commaIn(bytes, begin, end);
  const runEnd = commaIn(bytes, versionEnd + 1, end);
  const version = readDecimal(bytes, begin, versionEnd);
  const run = readDecimal(bytes, versionEnd + 1, runEnd);
  const sequence = readDecimal(bytes, runEnd + 1, end);
  if (Math.min(version, run, sequence) < 0 || version > VERSION_MAX || run > RUN_MAX || sequence > SEQUENCE_MAX) {
    return NOT_QUICK;
  }
  const callNumber = encodeCallNumber({ version, run, sequence });
  for (let place = 0; place < CALL_NUMBER_LENGTH; place++) out[at + place] = callNumber.charCodeAt(place);
  return at + CALL_NUMBER_LENGTH;
}

/** `end` when there is none. */
function commaIn(bytes: Uint8Array, begin: number, end: number): number {
  let place = begin;
  while (place < end && bytes[place] !== COMMA) place++;
  return place;
}

function answer([version, run, sequence]: Fields, json: boolean | undefined): string {
  const callNumber = encodeCallNumber({ version, run, sequence });
  return json ? JSON.stringify({ callNumber, version, run, sequence }) : callNumber;
}

function fieldsOf(texts: readonly (string | undefined)[]): Fields {
  if (texts.length !== LIMITS.length || texts.includes(undefined)) {
    throw new RangeError("encode takes three numbers: version run sequence (in lines: version,run,sequence)");
  }
  return LIMITS.map(([name, max], index) => within(name, texts[index] as string, max)) as unknown as Fields;
}

function within(name: string, text: string, max: number): number {
  const isWhole = /^\s*\d{1,15}\s*$/.test(text);
  if (!isWhole || Number(text) > max)
    throw new RangeError(`${name} must be a whole number from 0 to ${max}, not ${JSON.stringify(text)}`);
  return Number(text);
}
