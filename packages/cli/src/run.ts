/** Runs the `callnumber` command: finds the sub-command, and loads what that needs only when it is asked for. */
import { type CommandIo, invoked } from "./command-io.js";
import { RELEASE } from "./release.js";

export type { CommandIo } from "./command-io.js";

/**
 * Runs a command in this process, several at a time if need be. Resolves to the exit code; touches neither the process's own streams and
 * environment nor its exit code. `words`: the command line without the program's name.
 */
export function run(words: readonly string[], io: CommandIo): Promise<number> {
  return invoked(io, async () => {
    const [word] = words;
    if (words.length === 1 && (word === "--version" || word === "-V")) return void io.stdout.write(`${RELEASE}\n`);
    const { runProgram } = await import("./program.js");
    await runProgram(words);
  });
}
