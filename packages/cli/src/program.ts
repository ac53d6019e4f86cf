/** All sub-commands and their help. Decides how a failure is printed and which exit code it has; the commands do the work. */
import type { EventEmitter } from "node:events";
import {
  type Argument,
  Command,
  CommanderError,
  Help,
  type HelpConfiguration,
  type Option,
  type OutputConfiguration,
} from "commander";
import { COMMANDS, LOOK_UP } from "./commands.js";
import { type CommandIo, invocation, RELEASE, redactSecrets } from "./invocation.js";
import { failureText, misuseText, printJson } from "./output.js";
import { withAdvice } from "./typing-mistakes.js";

const EXIT_FAILED = 1;
const EXIT_MISUSED = 2;

const SECRET_TYPED =
  "callnumber: a password or token on the command line is visible to every user of this machine, and stays in the shell's history. " +
  "Use --store-file (move: also --to-file), CALLNUMBER_STORE or --token-file";

const HELP_WIDTH_MAX = 80;
const HELP_COMMAND = ["help [command]", "Show the help of a command"] as const;
/** A list of commands has their names: arguments would leave too little room for the summaries. */
const HELP: HelpConfiguration = {
  // The parser's own `sortOptions` loads the rules of all languages, which takes 10 ms.
  visibleOptions: (command) =>
    new Help().visibleOptions(command).sort((one, other) => (sortKey(one) < sortKey(other) ? -1 : 1)),
  subcommandTerm: (command) => command.name(),
};

/** The short name, where there is one. */
function sortKey({ short, long }: Option): string {
  return (short ?? long ?? "").replace(/^-+/, "").toLowerCase();
}

/** Within a command: `words` are its command line. */
export async function runProgram(words: readonly string[]): Promise<void> {
  const command = invocation();
  const { stdout, stderr } = command.io;
  const asJson = words.includes("--json");
  command.asJson = asJson;
  const [name = "", ...rest] = words;
  // From the script of `complete`: nothing of it is an option.
  if (name === "complete" && rest[0] === "--") {
    const { completionsFor } = await import("./commands/complete.js");
    const typed = rest.slice(1);
    return void stdout.write(completionsFor(await programNaming(typed), typed));
  }
  const program = await programNaming(words.filter((word) => word !== "--json"));
  if (words.length === 0) return program.outputHelp();
  if (asJson) {
    const explained = commandToExplain(
      program,
      words.filter((word) => word !== "--json"),
    );
    if (explained !== undefined) return printJson(helpAsJson(explained));
  }
  // With --json a program reads this, and expects a failure or nothing.
  if (!asJson && words.some((word) => redactSecrets(word) !== word)) stderr.write(`${SECRET_TYPED}\n`);
  // `… | head` closes the pipe while we still write: that is no failure. A full disk is one.
  const onOutputFailure = (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") return command.leave(0);
    stderr.write(failureText(error, asJson));
    command.leave(EXIT_FAILED);
  };
  stdout.on("error", onOutputFailure);
  command.onEnd(() => stdout.off("error", onOutputFailure));
  try {
    const isUnknownHelp = name === "help" && rest.length > 0 && !Object.hasOwn(COMMANDS, rest[0] as string);
    await program.parseAsync(isUnknownHelp ? rest : words, { from: "user" });
  } catch (error) {
    // Help and version also end here, with code 0.
    if (error instanceof CommanderError) {
      command.exitCode = error.exitCode === 0 ? 0 : EXIT_MISUSED;
      if (error instanceof Misuse) stderr.write(misuseText(withAdvice(error, error.command, words), asJson));
    } else {
      stderr.write(failureText(error, asJson));
      command.exitCode = error instanceof TypeError || error instanceof RangeError ? EXIT_MISUSED : EXIT_FAILED;
    }
  }
}

/** A wrong command line, with the command that rejected it. */
class Misuse extends CommanderError {
  readonly command: Command;

  constructor({ exitCode, code, message }: CommanderError, command: Command) {
    super(exitCode, code, message);
    this.command = command;
  }
}

/** The help of a command is no misuse, also where it stands for a command that is missing. */
function misused(error: CommanderError, command: Command): never {
  throw error.exitCode === 0 || error.code === "commander.help" ? error : new Misuse(error, command);
}

function programNaming([name = "", second = ""]: readonly string[]): Promise<Command> {
  return programFor([name === "help" ? second : name]);
}

/** With every sub-command, but the options of those only that are named: loading a command takes longer than listing all. */
export async function programFor(names: readonly string[]): Promise<Command> {
  const { stdout, stderr, env } = invocation().io;
  const output: OutputConfiguration = {
    writeOut: (text) => void stdout.write(text),
    writeErr: (text) => void stderr.write(text),
    getOutHelpWidth: () => helpWidthOf(stdout),
    getErrHelpWidth: () => helpWidthOf(stderr),
    // The help has no colors.
    getOutHasColors: () => false,
    getErrHasColors: () => false,
    // The message is printed when it is caught, with advice.
    outputError: () => {},
  };
  const program: Command = new Command("callnumber")
    .description("Makes short, permanent numbers for messages. No number is issued twice.")
    .version(RELEASE)
    .showSuggestionAfterError()
    .exitOverride((error) => misused(error, program))
    .configureOutput(output)
    .configureHelp(HELP)
    .commandsGroup(LOOK_UP)
    .helpCommand(...HELP_COMMAND)
    .addHelpText(
      "after",
      `
To try it:
  $ callnumber serve               starts a coordinator on an embedded store
  $ callnumber next -n 3           in another terminal: three call numbers
  $ callnumber inspect 2VznWE2i    shows what this number is and who made it

Settings can also be in the environment: --store is CALLNUMBER_STORE. The help
of a command names its variables. Every command takes --json; failures are then
JSON on standard error.

A message ends with its code: callnumber explain CODE prints cause and fix.
Exit codes: 0 done, 1 failed or the answer is no, 2 misused. status --check has
its own.`,
    );
  for (const [name, { group, summary, load }] of Object.entries(COMMANDS)) {
    const command = names.includes(name) ? (await load()).makeCommand() : new Command(name);
    command.summary(summary).helpGroup(group);
    for (const one of withSubCommands(command)) {
      one
        .configureOutput(output)
        .configureHelp(HELP)
        .exitOverride((error) => misused(error, one));
      if (one.commands.length > 0) one.helpCommand(...HELP_COMMAND);
      // Where there are sub-commands, the parser would take the flag from them.
      if (one.commands.length === 0) one.option("--json", "print JSON for programs");
      readSettingsFrom(env, one);
    }
    program.addCommand(command);
  }
  return program;
}

function helpWidthOf({ isTTY, columns = HELP_WIDTH_MAX }: CommandIo["stdout"]): number {
  return isTTY ? Math.min(columns, HELP_WIDTH_MAX) : HELP_WIDTH_MAX;
}

/** commander reads the environment of the process, in a private step. This one reads the environment that the command was given. */
function readSettingsFrom(env: CommandIo["env"], command: Command): void {
  function _parseOptionsEnv(this: Command & EventEmitter): void {
    for (const option of this.options) {
      const value = option.envVar === undefined ? undefined : env[option.envVar];
      const source = this.getOptionValueSource(option.attributeName()) ?? "default";
      if (value !== undefined && source === "default") this.emit(`optionEnv:${option.name()}`, value);
    }
  }
  Object.assign(command, { _parseOptionsEnv });
}

function withSubCommands(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(withSubCommands)];
}

/** Have commands, and do one of them where none is named: `token` lists. */
const ACTING_ALONE: ReadonlySet<string> = new Set(["token"]);

/**
 * Returns the command whose help a command line asks for; undefined where it asks for something else. A command that only has others
 * stands for its help.
 */
function commandToExplain(program: Command, words: readonly string[]): Command | undefined {
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

function helpAsJson(command: Command): object {
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
