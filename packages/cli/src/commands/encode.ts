/** `encode`: parts to call numbers, offline. */
import { type CallNumberParts, encodeCallNumber, RUN_MAX, SEQUENCE_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { Command } from "commander";
import { readDecimal, writeAscii } from "../ascii-bytes.js";
import { partsAsJson } from "../parts-as-json.js";
import { NOT_QUICK, pipeLines } from "../pipe-lines.js";
import { print } from "../print.js";

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
            quick: json ? quickAsJson : quick,
            answer: (line) => answer(fieldsOf(line.split(",")), json),
          });
        }
        print(answer(fieldsOf([version, run, sequence]), json));
      },
    );
}

/** As `answer` without JSON, of a line that is three numbers within their limits and nothing else. */
function quick(bytes: Uint8Array, begin: number, end: number, out: Uint8Array, at: number): number {
  const parts = partsIn(bytes, begin, end);
  return parts === undefined ? NOT_QUICK : writeAscii(encodeCallNumber(parts), out, at);
}

function quickAsJson(bytes: Uint8Array, begin: number, end: number, out: Uint8Array, at: number): number {
  const parts = partsIn(bytes, begin, end);
  return parts === undefined ? NOT_QUICK : writeAscii(partsAsJson(encodeCallNumber(parts), parts), out, at);
}

/** Undefined where something is unusual, be it right or wrong: `answer` decides. */
function partsIn(bytes: Uint8Array, begin: number, end: number): CallNumberParts | undefined {
  const versionEnd = commaIn(bytes, begin, end);
  const runEnd = commaIn(bytes, versionEnd + 1, end);
  const version = readDecimal(bytes, begin, versionEnd);
  const run = readDecimal(bytes, versionEnd + 1, runEnd);
  const sequence = readDecimal(bytes, runEnd + 1, end);
  const isUsual = version >= 0 && run >= 0 && sequence >= 0;
  if (!isUsual || version > VERSION_MAX || run > RUN_MAX || sequence > SEQUENCE_MAX) return undefined;
  return { version, run, sequence };
}

/** `end` when there is none. */
function commaIn(bytes: Uint8Array, begin: number, end: number): number {
  let place = begin;
  while (place < end && bytes[place] !== COMMA) place++;
  return place;
}

function answer([version, run, sequence]: Fields, json: boolean | undefined): string {
  const parts = { version, run, sequence };
  const callNumber = encodeCallNumber(parts);
  return json ? partsAsJson(callNumber, parts) : callNumber;
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
