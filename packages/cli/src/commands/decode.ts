/** `decode`: call numbers to their parts, offline. */
import { escapeLines } from "@callnumber/coordinator/internal/text";
import { callNumberIn } from "@callnumber/protocol/api";
import { decodeCallNumber } from "@callnumber/protocol/codec";
import { Command } from "commander";
import { answerLines } from "../input.js";
import { invocation } from "../invocation.js";
import { failureLine, print } from "../output.js";

export function makeCommand(): Command {
  return new Command("decode")
    .description(
      "Prints version,run,sequence for each call number, also in a link or sentence that has one. Needs no coordinator. Reports a text without one on standard " +
        "error; the others are decoded, and the exit code is 1.",
    )
    .argument("<callnumber...>", "call numbers or links, or - to read them from standard input, one a line")
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber decode 2VznWE2i\n  0,99,345\n  $ callnumber decode - < numbers.txt > parts.csv",
    )
    .action(async (callNumbers: readonly string[], { json }: { json?: boolean }) => {
      const answer = (text: string) => {
        const callNumber = callNumberIn(text) ?? text;
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
          command.io.stderr.write(`${json ? failureLine(error) : escapeLines((error as Error).message)}\n`);
        }
      }
    });
}
