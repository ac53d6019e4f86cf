/** `decode`: call numbers to their parts, offline. */
import { decodeCallNumber } from "@callnumber/protocol/codec";
import { Command } from "commander";
import { answerLines } from "../input.js";
import { invocation } from "../invocation.js";
import { print } from "../output.js";

export function decodeCommand(): Command {
  return new Command("decode")
    .description(
      "Prints version,run,sequence for each call number. Needs no coordinator. Reports a text that is no call number on standard " +
        "error; the others are decoded, and the exit code is 1.",
    )
    .argument("<callnumber...>", "call numbers, or - to read them from standard input, one a line")
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber decode 2VznWE2i\n  0,99,345\n  $ callnumber decode - < numbers.txt > parts.csv",
    )
    .action(async (callNumbers: readonly string[], { json }: { json?: boolean }) => {
      const answer = (callNumber: string) => {
        const { version, run, sequence } = decodeCallNumber(callNumber);
        return json ? JSON.stringify({ callNumber, version, run, sequence }) : `${version},${run},${sequence}`;
      };
      if (callNumbers.length === 1 && callNumbers[0] === "-") return answerLines(answer);
      for (const callNumber of callNumbers) {
        try {
          print(answer(callNumber));
        } catch (error) {
          const command = invocation();
          command.exitCode = 1;
          command.io.stderr.write(`${(error as Error).message}\n`);
        }
      }
    });
}
