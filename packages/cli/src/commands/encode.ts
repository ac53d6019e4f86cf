/** `encode`: parts to call numbers, offline. */
import { type CallNumberParts, encodeCallNumber, RUN_MAX, SEQUENCE_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { Command } from "commander";
import { answerLines } from "../input.js";
import { print } from "../output.js";

export function makeCommand(): Command {
  return new Command("encode")
    .description(
      "Prints the call number of a version (0-7), run (0-1073741823) and sequence (0-16383). Needs no coordinator.",
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
        const answer = (texts: readonly (string | undefined)[]) => {
          const parts = partsIn(texts);
          const callNumber = encodeCallNumber(parts);
          return json ? JSON.stringify({ callNumber, ...parts }) : callNumber;
        };
        if (version === "-") await answerLines((line) => answer(line.split(",")));
        else print(answer([version, run, sequence]));
      },
    );
}

/** @throws RangeError for anything but three numbers within their limits. */
function partsIn(texts: readonly (string | undefined)[]): CallNumberParts {
  const [version, run, sequence] = texts;
  if (texts.length !== 3 || version === undefined || run === undefined || sequence === undefined) {
    throw new RangeError(
      "encode takes three numbers, such as callnumber encode 0 99 345 (version run sequence; in lines: version,run,sequence)",
    );
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
