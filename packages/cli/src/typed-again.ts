/** A command that acts on a store, as it was typed, with more options: to be run again. What the environment and defaults gave they give again. */
import { type CommandOptions, commandLine } from "@callnumber/protocol/operator";
import type { Command } from "commander";

/** Filled in when it is printed: without a password, and whatever gave it. */
const FILLED_IN: ReadonlySet<string> = new Set(["store", "storeFile", "namespace", "witnessFolder"]);

export function typedAgain(command: Command, verb: "recover" | "advance-version", more: CommandOptions): string {
  const typed = command.options.flatMap((option): [string, CommandOptions[string]][] => {
    const name = option.attributeName();
    if (FILLED_IN.has(name) || command.getOptionValueSource(name) !== "cli") return [];
    return [[option.name(), command.getOptionValue(name)]];
  });
  return commandLine(verb, command.getOptionValue("namespace"), { ...Object.fromEntries(typed), ...more });
}
