/**
 * docs/reference/cli.md lists the commands and options that the program has. Without arguments this script fails when the page
 * differs; --write updates it. Needs a build.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { Writable } from "node:stream";
import { COMMANDS } from "../packages/cli/dist/commands.js";
import { invoke } from "../packages/cli/dist/invocation.js";
import { programFor } from "../packages/cli/dist/program.js";

const PAGE = new URL("../docs/reference/cli.md", import.meta.url);
const MARK = "<!-- The rest is written by `npm run shown -- --write`. -->";
const HEADINGS = { flags: "Option", meaning: "Meaning", byDefault: "Default", variable: "Variable" };

const stream = new Writable();
let program;
await invoke({ stdin: stream, stdout: stream, stderr: stream, env: {} }, async () => {
  program = await programFor(Object.keys(COMMANDS));
});
const commands = leavesOf(program.commands);
const useCounts = new Map();
for (const key of commands.flatMap(({ options }) => options.map(keyOf)))
  useCounts.set(key, (useCounts.get(key) ?? 0) + 1);

const before = readFileSync(PAGE, "utf8");
const [introduction] = before.split(MARK);
const after = `${introduction}${MARK}\n\n${[sharedOptions(), ...sections()].join("\n\n")}\n`;
if (after !== before) {
  const isWriting = process.argv.includes("--write");
  if (isWriting) writeFileSync(PAGE, after);
  else process.exitCode = 1;
  console.log(
    `${isWriting ? "written" : "differs from the program (npm run shown -- --write updates it)"}: docs/reference/cli.md`,
  );
}

function leavesOf(commands) {
  return commands.flatMap((command) => (command.commands.length === 0 ? [command] : leavesOf(command.commands)));
}

/** What is the same in several commands is described once. */
function isShared(option) {
  return useCounts.get(keyOf(option)) > 1;
}

function keyOf({ flags, description, envVar, mandatory }) {
  return [flags, description, envVar, mandatory].join();
}

function sharedOptions() {
  const shared = commands.flatMap(({ options }) => options.filter(isShared));
  const distinct = new Map(shared.map((option) => [keyOf(option), option]));
  return `## Shared options\n\n${table(visible([...distinct.values()]))}`;
}

function sections() {
  const headings = new Set(program.commands.map((command) => command.helpGroup()));
  return [...headings].map((heading) => {
    const members = program.commands.filter((command) => command.helpGroup() === heading);
    return [`## ${heading.replace(":", "")}`, ...leavesOf(members).map(commandText)].join("\n\n");
  });
}

function commandText(command) {
  const options = visible(command.options);
  const own = options.filter((option) => !isShared(option));
  const shared = options.filter((option) => isShared(option) && option.long !== "--json");
  const names = shared.map(({ long }) => `\`${long}\``).join(", ");
  const paragraph = wrapped(`${command.summary()}.${names === "" ? "" : ` Shared options: ${names}.`}`);
  return [`### \`${usageOf(command)}\``, paragraph, ...(own.length === 0 ? [] : [table(own)])].join("\n\n");
}

function usageOf(command) {
  const parent = command.parent === program ? [] : [command.parent.name()];
  return [...parent, command.name(), command.usage().replace("[options] ", "").replace("[options]", "")]
    .join(" ")
    .trim();
}

/** A row for each option, under the name of its group where there are several; without columns that are empty. */
function table(options) {
  const rows = options.map(rowOf);
  const columns = Object.keys(HEADINGS).filter((column) => rows.some((row) => row[column] !== ""));
  const line = (row) => `| ${columns.map((column) => row[column] ?? "").join(" | ")} |`;
  const lines = [line(HEADINGS), `|${" --- |".repeat(columns.length)}`];
  const hasGroups = new Set(options.map(groupOf)).size > 2;
  for (const [index, row] of rows.entries()) {
    const group = groupOf(options[index]);
    const isFirst = index === 0 || groupOf(options[index - 1]) !== group;
    if (hasGroups && isFirst) lines.push(line({ flags: `**${group.replace(":", "")}**` }));
    lines.push(line(row));
  }
  return lines.join("\n");
}

function groupOf({ helpGroupHeading = "Other:" }) {
  return helpGroupHeading;
}

function rowOf({ flags, description, envVar, mandatory, defaultValue, defaultValueDescription }) {
  const value = String(defaultValueDescription ?? defaultValue ?? "");
  const isText = value === "" || value === "none" || value.includes(" ");
  return {
    flags: `\`${flags}\``,
    meaning: value === "" ? description : description.replace(/ \(default: .*\)$/, ""),
    byDefault: mandatory ? "required" : isText ? value : `\`${value}\``,
    variable: envVar === undefined ? "" : `\`${envVar}\``,
  };
}

/** In the order of the groups, those without one last, and by name in each. */
function visible(options) {
  const named = options.filter(({ helpGroupHeading }) => helpGroupHeading !== undefined);
  const groups = [...new Set([...named, ...options].map(groupOf))];
  const rankOf = (option) => groups.indexOf(groupOf(option));
  return options
    .filter(({ hidden }) => !hidden)
    .sort((one, other) => rankOf(one) - rankOf(other) || one.long.localeCompare(other.long));
}

function wrapped(text) {
  return text.replace(/(.{1,100})(?: |$)/g, "$1\n").trimEnd();
}
