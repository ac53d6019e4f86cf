/** `init`: makes a namespace, on the store itself. */
import { Command } from "commander";
import { type MakingOptions, makeNamespace, makingOptions } from "./make-namespace.js";
import { namespaceOption, storeOption } from "./options.js";

interface Options extends MakingOptions {
  readonly namespace: string;
}

export function initCommand(): Command {
  const command = new Command("init")
    .summary("make a namespace in a store")
    .description(
      "Makes a namespace: once for each, before the first lease. Acts on the store itself; an embedded store must not be in use. " +
        "If an archive already holds call numbers, give a first run above all of theirs.",
    )
    .addOption(storeOption())
    .addOption(namespaceOption())
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber init --store redis://127.0.0.1:6379\n  $ callnumber init --namespace lists --first-run 200000",
    )
    .action((options: Options, self: Command) => makeNamespace(self, options.namespace, options));
  for (const option of makingOptions()) command.addOption(option);
  return command;
}
