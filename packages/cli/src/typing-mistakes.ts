/** What people type when they mean something else. Each failure of the option parser names the command that was meant, or an example. */
import { shellWord } from "@callnumber/protocol/api";
import type { Command, CommanderError } from "commander";
import { COMMANDS } from "./commands.js";

/** Words of other programs, by the command that does it here. */
const WORDS: Readonly<Record<string, string>> = {
  serve: "daemon listen server start up",
  init: "create setup",
  next: "gen generate id make mint new number",
  inspect: "find get lookup search show view who whois",
  runs: "leases ledger list ls",
  status: "health info ping state",
  export: "dump",
  decode: "parse",
  doctor: "check diagnose verify",
  complete: "completion completions",
  explain: "error errors why",
  recover: "fix repair restore",
  backup: "copy save",
  retention: "cleanup gc prune trim",
  move: "migrate mv",
  "advance-version": "advance bump upgrade",
  "token create": "token add,token issue,token make,token new",
  "token list": "token ls,token show",
  "token revoke": "token delete,token remove,token rm",
};

const COMMAND_MEANT = new Map(
  Object.entries(WORDS).flatMap(([command, words]) =>
    words.split(command.includes(" ") ? "," : " ").map((word) => [word, command] as const),
  ),
);

/** By what was typed: the options that it may mean, of which a command has one. */
const OPTIONS_MEANT: Readonly<Record<string, readonly string[]>> = {
  "-c": ["--coordinator"],
  "-f": ["--apply"],
  "-n": ["--limit", "--namespace"],
  "-o": ["--to"],
  "-p": ["--port"],
  "-s": ["--store"],
  "-y": ["--apply"],
  "--all": ["--all-namespaces", "--keep-all"],
  "--confirm": ["--apply"],
  "--db": ["--store"],
  "--force": ["--apply"],
  "--last": ["--limit"],
  "--n": ["-n"],
  "--output": ["--to"],
  "--postgres": ["--store"],
  "--redis": ["--store"],
  "--server": ["--coordinator"],
  "--token": ["--token-file", "--tokens-file"],
  "--url": ["--coordinator", "--store"],
  "--yes": ["--apply"],
};

type Meaning = readonly [pattern: RegExp, option: string];

/** By command: the option that a word without one was meant for. Every command may be given its namespace. */
const OPERANDS: Readonly<Record<string, readonly Meaning[]>> = {
  "advance-version": [[/^[1-7]$/, "--to"]],
  backup: [[/./, "--to"]],
  doctor: [
    [/^https?:/, "--coordinator"],
    [/^[a-z-]+:/, "--store"],
  ],
  move: [[/./, "--to"]],
  next: [[/^\d+$/, "-n"]],
  retention: [[/^\d+$/, "--days"]],
  runs: [[/[A-Za-z]/, "--holder"]],
  serve: [
    [/^\d+$/, "--port"],
    [/^[a-z-]+:/, "--store"],
  ],
};
/** Not `apply`, which was meant to be an option. */
const NAMESPACE: Meaning = [/^(?!ap*l?y$)[a-z][a-z0-9-]*$/, "--namespace"];

/** What a text processor makes of one or two hyphens. */
const DASH = /^[\u2010-\u2015\u2212]+(?=\w)/;

/** Returns the message in our words, with what was meant in place of the parser's own guess. `command`: where it failed; `words`: the command line. */
export function withAdvice({ code, message }: CommanderError, command: Command, words: readonly string[]): string {
  const [, guess] = /\n(\(Did you mean .*\?\))$/s.exec(message) ?? [];
  const advice = adviceFor(code, message, command, words) ?? guess;
  const fault = inOurWords(code, message, command);
  return advice === undefined ? fault : `${fault}\n${advice}`;
}

/** The value of an option, of its variable or of an argument, and what is wrong with it. */
const INVALID_VALUE =
  /^error: (?:option '(?:-\w, )?(--[\w-]+).*?' (?:argument|value)|command-argument value) '(.*?)'(?: from env '(\w+)')? is invalid(?: for argument '(\w+)')?\. (.*)$/s;

function inOurWords(code: string, message: string, command: Command): string {
  const quoted = quotedIn(message);
  const option = /--[\w-]+/.exec(quoted)?.[0] ?? quoted;
  const name = nameOf(command) || "callnumber";
  switch (code) {
    case "commander.unknownCommand":
      return `there is no command "${quoted}"`;
    case "commander.unknownOption":
      return `${name} has no option ${quoted}`;
    case "commander.missingArgument":
      return `${name} needs the argument ${quoted.toUpperCase()}`;
    case "commander.optionMissingArgument":
      return `${option} needs a value`;
    case "commander.missingMandatoryOptionValue":
      return `${name} needs ${option}`;
    case "commander.excessArguments":
      // Not which: it may be a URL with a password.
      return `${name} takes ${argumentsIn(command.registeredArguments.length)}, not ${command.args.length}`;
    default: {
      const [, flag, value = "", variable, argument, fault = ""] = INVALID_VALUE.exec(message) ?? [];
      const place = argument?.toUpperCase() ?? variable ?? flag;
      if (place === undefined) return message.replace(/^error: /, "");
      return `${place} ${JSON.stringify(value)}${fault.startsWith("must ") ? "" : ":"} ${fault}`;
    }
  }
}

function adviceFor(code: string, message: string, command: Command, words: readonly string[]): string | undefined {
  const [first = ""] = words;
  if ([first, ...command.args].some((word) => DASH.test(word))) {
    return didYouMean(words.map(withHyphens).map(shellWord).join(" "));
  }
  const [operand] = command.args.slice(code === "commander.invalidArgument" ? 0 : command.registeredArguments.length);
  switch (code) {
    case "commander.unknownCommand":
      return didYouMean(commandFor(quotedIn(message)));
    case "commander.unknownOption":
      return adviceForOption(quotedIn(message), command);
    case "commander.excessArguments":
    case "commander.invalidArgument":
      return operand === undefined ? undefined : didYouMean(commandWith(operand, command));
    case "commander.missingMandatoryOptionValue":
    case "commander.missingArgument":
    case "commander.optionMissingArgument": {
      const other = COMMAND_MEANT.get(`${command.parent?.name()} ${operand}`);
      const meant = other ?? (operand === undefined ? undefined : commandWith(operand, command));
      return didYouMean(meant) ?? exampleOf(command) ?? `Usage: callnumber ${nameOf(command)} ${command.usage()}`;
    }
    default:
      return undefined;
  }
}

function argumentsIn(count: number): string {
  return count === 1 ? "one argument" : `${count || "no"} arguments`;
}

function didYouMean(meant: string | undefined): string | undefined {
  return meant === undefined ? undefined : `(Did you mean "callnumber ${meant}"?)`;
}

function quotedIn(message: string): string {
  return /'(.*)'/s.exec(message)?.[1] ?? "";
}

function withHyphens(word: string): string {
  return word.replace(DASH, /^.+\w\w/.test(word) ? "--" : "-");
}

/** Below the program, such as `token create`; empty for the program. */
function nameOf(command: Command): string {
  return command.parent === null ? "" : `${nameOf(command.parent)} ${command.name()}`.trim();
}

function commandFor(word: string): string | undefined {
  const lowerCase = word.toLowerCase();
  if (lowerCase === "version") return "--version";
  if (Object.hasOwn(COMMANDS, lowerCase)) return lowerCase;
  if (/^https?:/.test(word) || /^(?=.*\d)[0-9A-Za-z]{8}$/.test(word)) return `inspect ${shellWord(word)}`;
  return COMMAND_MEANT.get(lowerCase);
}

function adviceForOption(typed: string, command: Command): string | undefined {
  const [flag = ""] = typed.split("=");
  const has = (option: string) => command.options.some(({ short, long }) => option === short || option === long);
  if (flag === "--dry-run" && has("--apply")) return "Without --apply nothing is changed";
  if (flag === "-?" || flag === "/?") return didYouMean(`${nameOf(command)} --help`.trim());
  const meant = OPTIONS_MEANT[flag]?.find(has);
  return meant === undefined ? undefined : `(Did you mean ${meant}?)`;
}

/** The command with a word that it does not take, given to the option that it was meant for. */
function commandWith(operand: string, command: Command): string | undefined {
  const name = nameOf(command);
  if (operand === "help") return `${name} --help`;
  const named = command.options.some(({ long }) => long === "--namespace") ? [NAMESPACE] : [];
  const [, option] = [...(OPERANDS[name] ?? []), ...named].find(([pattern]) => pattern.test(operand)) ?? [];
  return option === undefined ? undefined : `${name} ${option} ${shellWord(operand)}`;
}

/** The first example of the command in its own help, or in that of the command above it. */
function exampleOf(command: Command): string | undefined {
  const name = nameOf(command);
  for (const place of [command, command.parent]) {
    const lines = place === null ? "" : helpTextOf(place).replaceAll(/ *\\\n */g, " ");
    const [, example] = new RegExp(`^ *\\$ (callnumber ${name} .*)$`, "m").exec(lines) ?? [];
    if (example !== undefined) return `Example: ${example}`;
  }
  return undefined;
}

/** With the examples, which are no part of `helpInformation()`. The command prints nothing more. */
function helpTextOf(command: Command): string {
  let text = "";
  const writeOut = (piece: string) => {
    text += piece;
  };
  command.configureOutput({ writeOut }).outputHelp();
  return text;
}
