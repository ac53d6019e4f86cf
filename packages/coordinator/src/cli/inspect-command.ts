/** `inspect`: what a call number is, and who made it. */

import process from "node:process";
import { CallNumberError, decodeCallNumber } from "@callnumber/protocol/codec";
import { inspectAnswerSchema } from "@callnumber/protocol/schemas";
import { type InspectAnswer, pathOf } from "@callnumber/protocol/wire";
import { Command } from "commander";
import { inspectMalformed } from "../inspection.js";
import { askCoordinator } from "./ask-coordinator.js";
import { coordinatorOption, namespaceOption } from "./options.js";
import { labelsInWords, print, printJson } from "./print.js";

interface Options {
  readonly coordinator: string;
  readonly namespace: string;
  readonly json?: boolean;
}

/** Whether an archive can hold the number: what a script wants to know. */
const CAN_EXIST: Readonly<Record<InspectAnswer["verdict"], boolean>> = {
  malformed: false,
  other_version: false,
  never_leased: false,
  reported: true,
  unreported: true,
};

export function inspectCommand(): Command {
  return new Command("inspect")
    .summary("what is this call number, and who made it?")
    .description("Asks the coordinator about call numbers. The exit code is 1 when one of them can't be in an archive.")
    .argument("<callnumber...>")
    .addOption(coordinatorOption())
    .addOption(namespaceOption())
    .addHelpText("after", "\nExample:\n  $ callnumber inspect 2VznWE2i")
    .action(async (callNumbers: readonly string[], { coordinator, namespace, json }: Options) => {
      const answers: InspectAnswer[] = [];
      for (const callNumber of callNumbers) {
        answers.push(malformedOrNull(namespace, callNumber) ?? (await ask(coordinator, namespace, callNumber)));
      }
      if (json) printJson(answers);
      else for (const answer of answers) print(inWords(answer));
      if (!answers.every(({ verdict }) => CAN_EXIST[verdict])) process.exitCode = 1;
    });
}

/** What no call number is spelt like needs no coordinator, and some of it (`..`) can't even stand in a path. */
function malformedOrNull(namespace: string, callNumber: string): InspectAnswer | null {
  try {
    decodeCallNumber(callNumber);
    return null;
  } catch (error) {
    if (error instanceof CallNumberError) return inspectMalformed({ namespace, callNumber }, error);
    throw error;
  }
}

function ask(coordinator: string, namespace: string, callNumber: string): Promise<InspectAnswer> {
  return askCoordinator(coordinator, pathOf("callNumber", { namespace, callNumber }), inspectAnswerSchema);
}

function inWords(answer: InspectAnswer): string {
  const lines = [
    `${JSON.stringify(answer.callNumber).slice(1, -1)}  ${answer.verdict.replaceAll("_", " ")}: ${answer.explanation}`,
  ];
  if ("run" in answer) lines.push(`  version ${answer.version}, run ${answer.run}, sequence ${answer.sequence}`);
  if ("lease" in answer) {
    const labels = labelsInWords(answer.lease.holder);
    if (labels !== "") lines.push(`  labels ${labels}`);
  }
  return lines.join("\n");
}
