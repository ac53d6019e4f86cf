/** All sub-commands and their help. Decides how a failure is told and which exit code it has; the commands do the work. */

import { exit, stderr } from "node:process";
import { Command, CommanderError } from "commander";
import { backupCommand } from "./backup-command.js";
import { endQuietlyWhenReaderLeaves } from "./closed-pipe.js";
import { decodeCommand } from "./decode-command.js";
import { doctorCommand } from "./doctor-command.js";
import { encodeCommand } from "./encode-command.js";
import { failureOf, misuseAsJson } from "./failure.js";
import { initCommand } from "./init-command.js";
import { inspectCommand } from "./inspect-command.js";
import { moveCommand } from "./move-command.js";
import { nextCommand } from "./next-command.js";
import { pauseCommand, resumeCommand } from "./pause-command.js";
import { recoverCommand } from "./recover-command.js";
import { RELEASE } from "./release.js";
import { runCommand } from "./run-command.js";
import { runsCommand } from "./runs-command.js";
import { serveCommand } from "./serve-command.js";
import { statusCommand } from "./status-command.js";

const EXIT_FAILED = 1;
const EXIT_MISUSED = 2;

const COMMANDS = [
  serveCommand,
  initCommand,
  nextCommand,
  encodeCommand,
  decodeCommand,
  inspectCommand,
  runsCommand,
  runCommand,
  statusCommand,
  pauseCommand,
  resumeCommand,
  recoverCommand,
  doctorCommand,
  backupCommand,
  moveCommand,
];

export async function runProgram(argv: readonly string[]): Promise<void> {
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

Every setting can also stand in the environment: --store is CALLNUMBER_STORE, and so on.
Every command takes --json; failures are then JSON on standard error. Exit codes: 0 done, 1 failed or the answer is no, 2 misused.`,
    );
  const asJson = argv.includes("--json");
  for (const make of COMMANDS) {
    const command = make();
    if (asJson) command.configureOutput({ outputError: (text, write) => write(misuseAsJson(text)) });
    command.exitOverride().option("--json", "print JSON for programs");
    program.addCommand(command);
  }
  if (argv.length <= 2) {
    program.outputHelp();
    return;
  }
  endQuietlyWhenReaderLeaves();
  try {
    await program.parseAsync([...argv]);
  } catch (error) {
    // commander has printed its message; help and version also end here, with code 0.
    if (error instanceof CommanderError) exit(error.exitCode === 0 ? 0 : EXIT_MISUSED);
    stderr.write(failureOf(error, asJson));
    exit(error instanceof TypeError || error instanceof RangeError ? EXIT_MISUSED : EXIT_FAILED);
  }
}
