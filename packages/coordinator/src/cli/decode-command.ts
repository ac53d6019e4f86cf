/** `decode`: call numbers to their parts, offline. */

import process, { stderr } from "node:process";
import { decodeCallNumber } from "@callnumber/protocol/codec";
import { Command } from "commander";
import { pipeLines } from "./pipe-lines.js";
import { print } from "./print.js";

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
      if (callNumbers.length === 1 && callNumbers[0] === "-") return pipeLines((line) => answer(line, json));
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

function answer(callNumber: string, json: boolean | undefined): string {
  const { version, run, sequence } = decodeCallNumber(callNumber);
  return json ? JSON.stringify({ callNumber, version, run, sequence }) : `${version},${run},${sequence}`;
}
