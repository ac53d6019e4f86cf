/**
 * `complete`: the script by which a shell completes commands and options. `complete -- WORDS` is what the script asks: @bomb.sh/tab answers
 * from the definitions that the help prints.
 */
import { RootCommand, script } from "@bomb.sh/tab";
import { Argument, Command, type Option } from "commander";
import { choicesOf } from "../options.js";
import { printJson, printPainted } from "../output.js";
import { errorEntries } from "./explain.js";

const SHELLS = ["bash", "fish", "zsh"] as const;
type Shell = (typeof SHELLS)[number];

type Complete = (value: string, description: string) => void;

/** The shell then completes the name of a file. */
const FILES = ":0\n";
const NOTHING_FOUND = ":4\n";

/**
 * In bash, the library evaluates what was typed, so that Tab would run `$(…)` and truncate the file after `>`; and it never completes the
 * name of a file.
 */
const BASH_REPAIRS: readonly (readonly [string, string])[] = [
  // biome-ignore lint/suspicious/noTemplateCurlyInString: of bash
  ['complete -- ${words[@]:1}"', 'complete -- $(printf \'%q \' "${words[@]:1}")"'],
  ["\ncomplete -F ", "\ncomplete -o default -F "],
];

export function makeCommand(): Command {
  return new Command("complete")
    .description(
      "Prints a script that completes commands, options and their values in your shell. Let the shell read it at its start. For bash, the " +
        "package bash-completion must be installed.",
    )
    .addArgument(new Argument("<shell>", "your shell").choices(SHELLS))
    .addHelpText(
      "after",
      "\nExamples:\n  $ source <(callnumber complete bash)        in ~/.bashrc\n  $ source <(callnumber complete zsh)         in ~/.zshrc, after compinit" +
        "\n  $ callnumber complete fish > ~/.config/fish/completions/callnumber.fish",
    )
    .action((shell: Shell, { json }: { readonly json?: boolean }) => {
      const script = completionScript(shell);
      if (json) printJson({ shell, script });
      else printPainted(script.trimEnd());
    });
}

/** Returns the script that a shell reads once. */
function completionScript(shell: Shell): string {
  const text = printedBy(() => script(shell, "callnumber", "callnumber"));
  return shell !== "bash" ? text : BASH_REPAIRS.reduce((before, [bad, good]) => before.replace(bad, () => good), text);
}

/** Returns what the script reads: a possible word on each line, with its meaning. `words`: typed so far; the last one is not complete. */
export function completionsFor(program: Command, words: readonly string[]): string {
  const root = new RootCommand();
  addOptions(root, program);
  for (const command of program.createHelp().visibleCommands(program)) addCommand(root, command, command.name());
  const found = printedBy(() => root.parse([...words]));
  return found === NOTHING_FOUND && isFile(optionBefore(program, words)) ? FILES : found;
}

function addCommand(root: RootCommand, command: Command, path: string): void {
  const added = root.command(path, command.summary() || command.description());
  addOptions(added, command);
  for (const argument of command.registeredArguments) {
    const values = path === "help" ? [...root.commands.keys()] : valuesOf(path, argument);
    added.argument(argument.name(), (complete: Complete) => values.forEach((value) => complete(value, "")));
  }
  for (const below of command.createHelp().visibleCommands(command)) addCommand(root, below, `${path} ${below.name()}`);
}

function valuesOf(path: string, { argChoices = [] }: Argument): readonly string[] {
  return path === "explain" ? errorEntries().map(({ code }) => code) : argChoices;
}

function addOptions(to: Pick<RootCommand, "option">, command: Command): void {
  for (const option of command.createHelp().visibleOptions(command)) {
    const name = option.long?.slice(2) ?? option.name();
    const alias = option.short?.slice(1);
    const complete = (found: Complete) => choicesOf(option).forEach((value) => found(value, ""));
    if (option.required || option.optional) to.option(name, option.description, complete, alias);
    else to.option(name, option.description, alias);
  }
}

/** The option whose value the last word is. */
function optionBefore(program: Command, words: readonly string[]): Option | undefined {
  const command = words.reduce((at, word) => at.commands.find((below) => below.name() === word) ?? at, program);
  return command.options.find(({ short, long }) => [short, long].includes(words.at(-2)));
}

function isFile(option: Option | undefined): boolean {
  return /<(file|path)>/.test(option?.flags ?? "");
}

/** The library prints on the console. It is synchronous, so nothing else is taken. */
function printedBy(act: () => void): string {
  const { log } = console;
  let text = "";
  console.log = (line: string) => {
    text += `${line}\n`;
  };
  try {
    act();
  } finally {
    console.log = log;
  }
  return text;
}
