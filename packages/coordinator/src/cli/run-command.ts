/** `run`: one run in full. */
import { runAnswerSchema } from "@callnumber/protocol/schemas";
import { pathOf, type RunAnswer } from "@callnumber/protocol/wire";
import { Command } from "commander";
import { askCoordinator } from "./ask-coordinator.js";
import { tokenFileOption } from "./bearer-token.js";
import { checked, coordinatorOption, namespaceOption, wholeNumber } from "./options.js";
import { instant, labelsInWords, print, printJson } from "./print.js";
import { shownFields } from "./shown-fields.js";

interface Options {
  readonly coordinator: string;
  readonly tokenFile?: string | undefined;
  readonly namespace: string;
  readonly json?: boolean;
}

export function runCommand(): Command {
  return new Command("run")
    .summary("one run: who got it, when, and how far it got")
    .description("Shows one run.")
    .argument("<run>", "number of the run", (text) => checked(wholeNumber(0, 2 ** 33 - 1), text))
    .addOption(coordinatorOption())
    .addOption(tokenFileOption())
    .addOption(namespaceOption())
    .addHelpText("after", "\nExample:\n  $ callnumber run 99")
    .action(async (run: number, { json, namespace, ...asked }: Options) => {
      const answer = await askCoordinator(asked, pathOf("run", { namespace, run }), runAnswerSchema);
      if (json) printJson(answer);
      else print(inWords(shownFields(answer)));
    });
}

function inWords(answer: RunAnswer): string {
  const { namespace, version, run, lastSequence, lease } = answer;
  const { holder, firstRun, runCount, leasedAtMs, coordinator, tokenId, nonce } = lease;
  const labels = labelsInWords(holder);
  return [
    `run ${run} of version ${version} in namespace ${namespace}`,
    `  state        ${stateInWords(answer)}`,
    `  sequence     ${lastSequence === null ? "none reported" : `used up to ${lastSequence}`}`,
    `  leased       at ${instant(leasedAtMs)} by coordinator ${coordinator}${runCount === 1 ? "" : `, with runs ${firstRun}-${firstRun + runCount - 1}`}`,
    `  holder       ${holder.name} on ${holder.host}, pid ${holder.pid}`,
    ...(labels === "" ? [] : [`  labels       ${labels}`]),
    ...(tokenId === undefined ? [] : [`  token        ${tokenId}`]),
    `  nonce        ${nonce}`,
  ].join("\n");
}

function stateInWords({ state, lease: { progress } }: RunAnswer): string {
  if (progress === null) return state;
  const at = instant(progress.reportedAtMs);
  return state === "burnt" ? `burnt: it was never handed out; noted at ${at}` : `${state}, reported at ${at}`;
}
