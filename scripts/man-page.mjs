/**
 * The manual page of the command, in the format of man(7), from the descriptions that its help prints. `npm run pack` writes it into the
 * package. Alone, `node scripts/man-page.mjs` prints it. Needs a build.
 */
import { Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { COMMANDS } from "../packages/cli/dist/commands.js";
import { invoke, RELEASE } from "../packages/cli/dist/invocation.js";
import { programFor } from "../packages/cli/dist/program.js";

if (process.argv[1] === fileURLToPath(import.meta.url)) process.stdout.write(await manPage());

export async function manPage() {
  const stream = new Writable();
  let program;
  await invoke({ stdin: stream, stdout: stream, stderr: stream, env: {} }, async () => {
    program = await programFor(Object.keys(COMMANDS));
  });
  const commands = program.commands.filter((command) => command.name() !== "help");
  return [
    `.TH CALLNUMBER 1 "" "callnumber ${RELEASE}" "User commands"`,
    ".SH NAME",
    `callnumber \\- ${text("generate short, permanent numbers for messages")}`,
    ".SH SYNOPSIS",
    ".B callnumber",
    ".I command",
    "[options]",
    ".SH DESCRIPTION",
    text(program.description()),
    ...after(program),
    ".SH COMMANDS",
    ...commands.flatMap((command) => sections(command, command.name())),
    "",
  ].join("\n");
}

function sections(command, name) {
  return [
    `.SS ${text([name, command.usage().replace("[options]", "").replace("[command]", "")].join(" ").trim())}`,
    `${text(command.summary())}.`,
    ...command.description().split("\n\n").flatMap(paragraph),
    ...options(command),
    ...after(command),
    ...command.commands.flatMap((below) => sections(below, `${name} ${below.name()}`)),
  ];
}

function options(command) {
  const help = command.createHelp();
  return help
    .visibleOptions(command)
    .flatMap((option) => [".TP", `.B ${text(option.flags)}`, text(help.optionDescription(option))]);
}

function paragraph(words) {
  return [".PP", text(words)];
}

/** The examples and remarks after a help, as they are. */
function after(command) {
  let help = "";
  command
    .configureOutput({
      writeOut: (piece) => {
        help += piece;
      },
    })
    .outputHelp();
  const remarks = help.replace(command.helpInformation(), "").trim();
  return remarks === "" ? [] : [".PP", ".nf", ...remarks.split("\n").map(text), ".fi"];
}

/** No text begins a request, and a hyphen stays the one that a shell knows. */
function text(words) {
  return words
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replace(/^(?=[.'])/, "\\&");
}
