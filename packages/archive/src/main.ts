/**
 * The command callnumber-archive: finds the subcommand and loads it. Each one reads its own arguments, and sets the exit status. Results
 * go to stdout, everything else to stderr.
 */
import { badUsage, type Command } from "./commands/command.js";
import { errorDetails } from "./errors.js";
import { ignoreClosedPipes, writeError, writeText } from "./terminal.js";

/** In the order of the help. Loaded when it is called: an import does not wait for the code of the reader. */
const COMMANDS: Readonly<Record<string, { readonly summary: string; load(): Promise<{ readonly command: Command }> }>> =
  {
    import: { summary: "Number and store the messages of mailboxes", load: () => import("./commands/import.js") },
    numbers: { summary: "Export which message has which number", load: () => import("./commands/numbers.js") },
    links: { summary: "Keep the links of an older archive", load: () => import("./commands/links.js") },
    serve: { summary: "Show the messages to people, as web pages", load: () => import("./commands/serve.js") },
    export: { summary: "Write messages as an mbox", load: () => import("./commands/export.js") },
  };

const HELP_TEXT = `A mail archive whose messages keep their call numbers.

  callnumber-archive <command> [options]

${Object.entries(COMMANDS)
  .map(([name, { summary }]) => `  ${name.padEnd(10)}${summary}`)
  .join("\n")}

callnumber-archive <command> --help has the options of a command.`;

export async function main(args = process.argv.slice(2)): Promise<void> {
  ignoreClosedPipes();
  try {
    const [name = "", ...rest] = args;
    if (["", "-h", "--help", "help"].includes(name)) {
      writeText(name === "" ? process.stderr : process.stdout, HELP_TEXT);
      if (name === "") process.exitCode = 2;
      return;
    }
    if (!Object.hasOwn(COMMANDS, name)) throw badUsage(`"${name}" is not a command`);
    const { command } = await (COMMANDS[name] as (typeof COMMANDS)[string]).load();
    if (rest.some((arg) => arg === "-h" || arg === "--help")) writeText(process.stdout, command.help.trimEnd());
    else await command.run(rest, process.env);
  } catch (error) {
    const details = errorDetails(error);
    writeError(details);
    process.exitCode = details.code === "bad_usage" ? 2 : 1;
  }
}
