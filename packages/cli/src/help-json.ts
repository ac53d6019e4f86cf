/** The help as JSON, for programs: what a command takes, and the commands that it has. */
import type { Argument, Command, Option } from "commander";

/** Have commands, and do one of them where none is named: `token` lists. */
const ACTING_ALONE: ReadonlySet<string> = new Set(["token"]);

/**
 * Returns the command whose help a command line asks for; undefined where it asks for something else. A command that only has others
 * stands for its help.
 */
export function commandToExplain(program: Command, words: readonly string[]): Command | undefined {
  let found = program;
  let isAsked = false;
  for (const word of words) {
    const hasCommands = found.commands.length > 0;
    const next = found.commands.find((command) => command.name() === word);
    if (word === "--help" || word === "-h" || (word === "help" && hasCommands)) isAsked = true;
    else if (next !== undefined) found = next;
    // The parser rejects it.
    else if (hasCommands) return undefined;
  }
  return isAsked || (found.commands.length > 0 && !ACTING_ALONE.has(found.name())) ? found : undefined;
}

export function helpAsJson(command: Command): object {
  const help = command.createHelp();
  return {
    name: pathOf(command),
    description: command.description(),
    arguments: command.registeredArguments.map(argumentAsJson),
    options: help.visibleOptions(command).map(optionAsJson),
    commands: help
      .visibleCommands(command)
      .filter((one) => one.name() !== "help")
      .map((one) => ({ name: one.name(), summary: one.summary() })),
  };
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

function argumentAsJson(argument: Argument): object {
  const { description, required, variadic } = argument;
  return { name: argument.name(), description, isRequired: required, isRepeatable: variadic };
}

function optionAsJson({ flags, description, defaultValue, envVar, mandatory }: Option): object {
  return { flags, description, default: defaultValue ?? null, variable: envVar ?? null, isRequired: mandatory };
}
