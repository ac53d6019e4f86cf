/** All sub-commands and their help. Decides how a failure is printed and which exit code it has; the commands do the work. */
import type { EventEmitter } from "node:events";
import { Command, CommanderError, type OutputConfiguration } from "commander";
import { type CommandIo, invocation, RELEASE } from "./invocation.js";
import { failureText, misuseText } from "./output.js";
import { redactUrl } from "./redact-url.js";

const EXIT_FAILED = 1;
const EXIT_MISUSED = 2;

const PASSWORD_TYPED =
  "callnumber: a password on the command line can be read by every user of this machine and stays in the shell's history. " +
  "Put a store's URL into a file (--store-file; --to-file of move), or into CALLNUMBER_STORE";

/** In the order of the help. Each is loaded only when it is run: `decode` needs no store, and only `serve` an HTTP server. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import("./commands/serve.js")).serveCommand(),
  init: async () => (await import("./commands/init.js")).initCommand(),
  next: async () => (await import("./commands/next.js")).nextCommand(),
  encode: async () => (await import("./commands/encode.js")).encodeCommand(),
  decode: async () => (await import("./commands/decode.js")).decodeCommand(),
  inspect: async () => (await import("./commands/inspect.js")).inspectCommand(),
  runs: async () => (await import("./commands/runs.js")).runsCommand(),
  export: async () => (await import("./commands/export.js")).exportCommand(),
  status: async () => (await import("./commands/status.js")).statusCommand(),
  recover: async () => (await import("./commands/recover.js")).recoverCommand(),
  "advance-version": async () => (await import("./commands/advance-version.js")).advanceVersionCommand(),
  doctor: async () => (await import("./commands/doctor.js")).doctorCommand(),
  backup: async () => (await import("./commands/backup.js")).backupCommand(),
  retention: async () => (await import("./commands/retention.js")).retentionCommand(),
  token: async () => (await import("./commands/token.js")).tokenCommand(),
  move: async () => (await import("./commands/move.js")).moveCommand(),
  schemes: async () => (await import("./commands/schemes.js")).schemesCommand(),
};

/** Within a command: `words` are its command line. */
export async function runProgram(words: readonly string[]): Promise<void> {
  const command = invocation();
  const { stdout, stderr } = command.io;
  const asJson = words.includes("--json");
  const program = await programFor(words, asJson);
  if (words.length === 0) return program.outputHelp();
  // With --json a program reads this, and expects a failure or nothing.
  if (!asJson && words.some((word) => redactUrl(word) !== word)) stderr.write(`${PASSWORD_TYPED}\n`);
  // `… | head` closes the pipe while we still write: that is no failure. A full disk is one.
  const onOutputFailure = (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") return command.leave(0);
    stderr.write(failureText(error, asJson));
    command.leave(EXIT_FAILED);
  };
  stdout.on("error", onOutputFailure);
  command.onEnd(() => stdout.off("error", onOutputFailure));
  try {
    await program.parseAsync(words, { from: "user" });
  } catch (error) {
    // commander has printed its message. Help and version also end here, with code 0.
    if (error instanceof CommanderError) command.exitCode = error.exitCode === 0 ? 0 : EXIT_MISUSED;
    else {
      stderr.write(failureText(error, asJson));
      command.exitCode = error instanceof TypeError || error instanceof RangeError ? EXIT_MISUSED : EXIT_FAILED;
    }
  }
}

/** With the sub-command that `words` name; with all of them where they name none: help and suggestions list every command. */
async function programFor(words: readonly string[], asJson: boolean): Promise<Command> {
  const { stdout, stderr, env } = invocation().io;
  const output: OutputConfiguration = {
    writeOut: (text) => void stdout.write(text),
    writeErr: (text) => void stderr.write(text),
    getOutHelpWidth: () => (stdout.isTTY ? stdout.columns : undefined) as number,
    getErrHelpWidth: () => (stderr.isTTY ? stderr.columns : undefined) as number,
    // The help has no colors.
    getOutHasColors: () => false,
    getErrHasColors: () => false,
    outputError: (text, write) => write(misuseText(text, asJson)),
  };
  const program = new Command("callnumber")
    .description("Short numbers for messages: eight characters, never used twice, made without a network call each.")
    .version(RELEASE)
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput(output)
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
  const [name = ""] = words;
  const named = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  const commands = await Promise.all((named === undefined ? Object.values(COMMANDS) : [named]).map((load) => load()));
  for (const command of commands) {
    for (const one of withSubCommands(command)) {
      one.configureOutput(output).exitOverride();
      // Where there are sub-commands, the parser would take the flag from them.
      if (one.commands.length === 0) one.option("--json", "print JSON for programs");
      readSettingsFrom(env, one);
    }
    program.addCommand(command);
  }
  return program;
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
