/** Runs the `callnumber` command in this process. What a sub-command needs is loaded only when that is run. */
import { type CommandIo, invoke, RELEASE } from "./invocation.js";

export type { CommandIo } from "./invocation.js";

/** Other programs have -v, or a command. */
const VERSION_WORDS: ReadonlySet<string> = new Set(["--version", "-V", "-v", "version"]);

/**
 * Runs a command, several at a time if need be. Resolves to the exit code. Does not touch the process's own streams, environment
 * and exit code. `words`: the command line without the program's name.
 */
export function run(words: readonly string[], io: CommandIo): Promise<number> {
  return invoke(io, async () => {
    const [word = "", flag = "--json"] = words;
    if (words.length <= 2 && VERSION_WORDS.has(word) && flag === "--json") {
      return void io.stdout.write(
        words.length === 1 ? `${RELEASE}\n` : `${JSON.stringify({ version: RELEASE }, undefined, 2)}\n`,
      );
    }
    const { runProgram } = await import("./program.js");
    await runProgram(words);
  });
}
