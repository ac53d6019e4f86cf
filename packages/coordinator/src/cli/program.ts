/** All sub-commands and their help. Decides how a failure is told and which exit code it has; the commands do the work. */

import { exit, stderr } from "node:process";
import { Command, CommanderError } from "commander";
import { visibleLines } from "../shown-text.js";
import { endQuietlyWhenReaderLeaves } from "./closed-pipe.js";
import { failureOf, misuseAsJson } from "./failure.js";
import { misuseWithoutPasswords, type Typed } from "./hidden-passwords.js";
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
  namespaces: async () => (await import("./namespaces-command.js")).namespacesCommand(),
  next: async () => (await import("./next-command.js")).nextCommand(),
  encode: async () => (await import("./encode-command.js")).encodeCommand(),
  decode: async () => (await import("./decode-command.js")).decodeCommand(),
  inspect: async () => (await import("./inspect-command.js")).inspectCommand(),
  runs: async () => (await import("./runs-command.js")).runsCommand(),
  export: async () => (await import("./export-command.js")).exportCommand(),
  run: async () => (await import("./run-command.js")).runCommand(),
  status: async () => (await import("./status-command.js")).statusCommand(),
  capacity: async () => (await import("./capacity-command.js")).capacityCommand(),
  recover: async () => (await import("./recover-command.js")).recoverCommand(),
  "advance-version": async () => (await import("./advance-version-command.js")).advanceVersionCommand(),
  doctor: async () => (await import("./doctor-command.js")).doctorCommand(),
  backup: async () => (await import("./backup-command.js")).backupCommand(),
  ledger: async () => (await import("./ledger-command.js")).ledgerCommand(),
  token: async () => (await import("./token-command.js")).tokenCommand(),
  move: async () => (await import("./move-command.js")).moveCommand(),
  schemes: async () => (await import("./schemes-command.js")).schemesCommand(),
  parse: async () => (await import("./parse-command.js")).parseCommand(),
  mint: async () => (await import("./mint-command.js")).mintCommand(),
  birthday: async () => (await import("./birthday-command.js")).birthdayCommand(),
  collisions: async () => (await import("./collisions-command.js")).collisionsCommand(),
};

/** `typed`: what should not have been among the words. */
export async function runProgram(argv: readonly string[], typed: Typed): Promise<void> {
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
  const asJson = argv.includes("--json");
  const wordsOf = asJson ? misuseAsJson : visibleLines;
  program.configureOutput({ outputError: (text, write) => write(wordsOf(misuseWithoutPasswords(text))) });
  for (const command of await commandsFor(argv)) {
    command.configureOutput({ outputError: (text, write) => write(wordsOf(misuseWithoutPasswords(text))) });
    command.exitOverride().option("--json", "print JSON for programs");
    if (command.options.some(({ long }) => long === "--store")) {
      (await import("./store-file.js")).takeStoreFromFile(command);
      (await import("./command-context.js")).fillPrintedCommands(command);
    }
    program.addCommand(command);
  }
  if (argv.length <= 2) {
    program.outputHelp();
    return;
  }
  // With --json a program reads this, and a failure is all that it expects.
  if (typed.hasPassword && !asJson) stderr.write(`${PASSWORD_TYPED}\n`);
  if (typed.hasToken && !asJson) stderr.write(`${TOKEN_TYPED}\n`);
  endQuietlyWhenReaderLeaves((error) => failureOf(error, asJson));
  try {
    await program.parseAsync([...argv]);
  } catch (error) {
    // commander has printed its message; help and version also end here, with code 0.
    if (error instanceof CommanderError) exit(error.exitCode === 0 ? 0 : EXIT_MISUSED);
    stderr.write(failureOf(error, asJson));
    exit(error instanceof TypeError || error instanceof RangeError ? EXIT_MISUSED : EXIT_FAILED);
  }
}

/** The one that is named; all of them where none is: help and suggestions speak of every command. */
function commandsFor([, , name = ""]: readonly string[]): Promise<readonly Command[]> {
  const named = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  return Promise.all((named === undefined ? Object.values(COMMANDS) : [named]).map((load) => load()));
}
