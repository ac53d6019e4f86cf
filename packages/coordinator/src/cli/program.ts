/** All sub-commands and their help. Decides how a failure is told and which exit code it has; the commands do the work. */
import type { EventEmitter } from "node:events";
import { Command, CommanderError, type OutputConfiguration } from "commander";
import { escapeLines } from "../text.js";
import { type CommandIo, running } from "./command-io.js";
import { failureOf, misuseAsJson } from "./failure.js";
import { misuseWithoutPasswords, secretsIn } from "./hidden-passwords.js";
import { RELEASE } from "./release.js";

const EXIT_FAILED = 1;
const EXIT_MISUSED = 2;

const PASSWORD_TYPED =
  "callnumber: a password on the command line can be read by every user of this machine and stays in the shell's history. " +
  "Put a store's URL into a file (--store-file; --to-file of move), or into CALLNUMBER_STORE";

const TOKEN_TYPED =
  "callnumber: a token on the command line can be read by every user of this machine and stays in the shell's history. " +
  "Revoke it, and put another one into a file (--token-file), or into CALLNUMBER_TOKEN";

/** In the order of the help. Each is loaded only when it is asked for: `decode` needs no store, and nothing but `serve` an HTTP server. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import("./serve-command.js")).serveCommand(),
  init: async () => (await import("./init-command.js")).initCommand(),
  next: async () => (await import("./next-command.js")).nextCommand(),
  encode: async () => (await import("./encode-command.js")).encodeCommand(),
  decode: async () => (await import("./decode-command.js")).decodeCommand(),
  inspect: async () => (await import("./inspect-command.js")).inspectCommand(),
  runs: async () => (await import("./runs-command.js")).runsCommand(),
  export: async () => (await import("./export-command.js")).exportCommand(),
  status: async () => (await import("./status-command.js")).statusCommand(),
  recover: async () => (await import("./recover-command.js")).recoverCommand(),
  "advance-version": async () => (await import("./advance-version-command.js")).advanceVersionCommand(),
  doctor: async () => (await import("./doctor-command.js")).doctorCommand(),
  backup: async () => (await import("./backup-command.js")).backupCommand(),
  retention: async () => (await import("./retention-command.js")).retentionCommand(),
  token: async () => (await import("./token-command.js")).tokenCommand(),
  move: async () => (await import("./move-command.js")).moveCommand(),
  schemes: async () => (await import("./schemes-command.js")).schemesCommand(),
};

/** Within a command: `words` are its command line. */
export async function runProgram(words: readonly string[]): Promise<void> {
  const command = running();
  const { stdout, stderr } = command.io;
  const program = new Command("callnumber")
    .description("Short numbers for messages: eight characters, never used twice, made without a network call each.")
    .version(RELEASE)
    .showSuggestionAfterError()
    .exitOverride()
    .addHelpText(
      "after",
      `
To try it:
  $ callnumber serve                     starts a coordinator on an embedded store, on this machine
  $ callnumber next -n 3                 in another terminal: three call numbers
  $ callnumber inspect 2VznWE2i          what is this number, who made it?

Settings can also be in the environment: --store is CALLNUMBER_STORE. The help of a command names its variables.
Every command takes --json; failures are then JSON on standard error. Exit codes: 0 done, 1 failed or the answer is no, 2 misused;
those of status --check are its own.`,
    );
  const asJson = words.includes("--json");
  const wordsOf = asJson ? misuseAsJson : escapeLines;
  const output: OutputConfiguration = {
    writeOut: (text) => void stdout.write(text),
    writeErr: (text) => void stderr.write(text),
    getOutHelpWidth: () => (stdout.isTTY ? stdout.columns : undefined) as number,
    getErrHelpWidth: () => (stderr.isTTY ? stderr.columns : undefined) as number,
    // The help has no colors.
    getOutHasColors: () => false,
    getErrHasColors: () => false,
    outputError: (text, write) => write(wordsOf(misuseWithoutPasswords(text))),
  };
  program.configureOutput(output);
  for (const sub of await commandsFor(words)) {
    for (const one of withSubCommands(sub)) {
      one.configureOutput(output).exitOverride();
      // Where there are sub-commands, the parser would take the flag from them.
      if (one.commands.length === 0) one.option("--json", "print JSON for programs");
    }
    if (sub.options.some(({ long }) => long === "--store")) {
      (await import("./store-file.js")).takeStoreFromFile(sub);
      (await import("./command-context.js")).fillPrintedCommands(sub);
    }
    takeSettingsFrom(command.io.env, sub);
    program.addCommand(sub);
  }
  if (words.length === 0) {
    program.outputHelp();
    return;
  }
  const typed = secretsIn(words);
  // With --json a program reads this, and a failure is all that it expects.
  if (typed.hasPassword && !asJson) stderr.write(`${PASSWORD_TYPED}\n`);
  if (typed.hasToken && !asJson) stderr.write(`${TOKEN_TYPED}\n`);
  // `… | head` closes the pipe while we still write: that is no failure. A disk that is full is one.
  const onOutputFailure = (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") return command.leave(0);
    stderr.write(failureOf(error, asJson));
    command.leave(EXIT_FAILED);
  };
  stdout.on("error", onOutputFailure);
  command.onEnd(() => stdout.off("error", onOutputFailure));
  try {
    await program.parseAsync(words, { from: "user" });
  } catch (error) {
    // commander has printed its message; help and version also end here, with code 0.
    if (error instanceof CommanderError) command.exitCode = error.exitCode === 0 ? 0 : EXIT_MISUSED;
    else {
      stderr.write(failureOf(error, asJson));
      command.exitCode = error instanceof TypeError || error instanceof RangeError ? EXIT_MISUSED : EXIT_FAILED;
    }
  }
}

/** commander reads the environment of the process, in a step that is private to it: here the same is done with the one that is given. */
function takeSettingsFrom(env: CommandIo["env"], command: Command): void {
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

/** The one that is named; all of them where none is: help and suggestions speak of every command. */
function commandsFor([name = ""]: readonly string[]): Promise<readonly Command[]> {
  const named = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  return Promise.all((named === undefined ? Object.values(COMMANDS) : [named]).map((load) => load()));
}
