/** The help of every command: its form, and which options the environment can set. */
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { COMMAND, callnumber, shell, shellLine } from "../../../test/processes/command.js";
import { run } from "../dist/run.js";

const WIDTH_MAX = 80;
const SUMMARY_LENGTH_MAX = 60;
const GROUP_LENGTH_MAX = 8;
const COMMAND_GROUPS = ["Run", "Look up", "Maintain", "Other schemes"];

/** What selects a store, a coordinator, a namespace, a directory or a token has the same meaning in every command. */
const SHARED_SETTINGS = "checkpoint-dir coordinator namespace store store-file token-file tokens-file".split(" ");
const SERVE_SETTINGS =
  `allow-host allow-network-file-system coordinator-name holder-burst-runs holder-runs-per-second host
  ignore-findings ledger-dir listen-without-tls listen-without-tokens log-level max-concurrent-leases max-connections port
  public-inspect tls-certificate tls-client-ca tls-key token-burst-runs token-runs-per-second`.split(/\s+/);

/** An option, or a command of a list. */
interface Item {
  /** As in the help, such as `--store <url>`. */
  readonly term: string;
  readonly meaning: string;
}

interface Help {
  readonly command: string;
  readonly lines: readonly string[];
  /** By heading. */
  readonly groups: ReadonlyMap<string, readonly Item[]>;
}

/** On a wide terminal or on none, for a user with a long home directory. */
async function helpOf(words: readonly string[], isTTY: boolean): Promise<Help> {
  const stdout = Object.assign(new PassThrough(), { isTTY, columns: 200 });
  const [stdin, stderr] = [new PassThrough(), new PassThrough()];
  const printed = text(stdout);
  expect(await run([...words, "--help"], { stdin, stdout, stderr, env: { HOME: `/${"home".repeat(30)}` } })).toBe(0);
  stdout.end();
  const help = await printed;
  const sections = [...help.matchAll(/^([A-Z][A-Za-z ]*):\n((?: .*\n)+)/gm)];
  const groups = sections.map(([, heading = "", body = ""]) => [heading, itemsIn(body)] as const);
  return { command: words.join(" "), lines: help.split("\n"), groups: new Map(groups) };
}

function itemsIn(body: string): readonly Item[] {
  const joined = body.replace(/\n {3,}/g, " ");
  return [...joined.matchAll(/^ {2}(\S.*?)(?: {2,}(.*))?$/gm)].map(([, term = "", meaning = ""]) => ({
    term,
    meaning,
  }));
}

/** The help of a command and of those below it. */
async function allHelps(words: readonly string[], isTTY: boolean): Promise<readonly Help[]> {
  const help = await helpOf(words, isTTY);
  const below = commandsIn(help).filter(({ term }) => term !== "help");
  return [help, ...(await Promise.all(below.map(({ term }) => allHelps([...words, term], isTTY)))).flat()];
}

function commandsIn({ groups }: Help): readonly Item[] {
  return [...COMMAND_GROUPS, "Commands"].flatMap((heading) => groups.get(heading) ?? []);
}

/** Each group of options. */
function optionGroupsIn({ groups }: Help): readonly (readonly Item[])[] {
  return [...groups.values()].filter(([first]) => first?.term.startsWith("-"));
}

function nameOf({ term }: Item): string {
  return /--([a-z-]+)/.exec(term)?.[1] as string;
}

const helps = await allHelps([], false);
const helpsOnTerminal = await allHelps([], true);

test("the help lists every command under one of four headings", () => {
  const groups = [...(helps[0] as Help).groups].filter(([heading]) => !/Options|To try it/.test(heading));
  expect(groups.map(([heading, items]) => [heading, items.map(({ term }) => term).join(" ")])).toEqual([
    ["Run", "serve init next"],
    ["Look up", "inspect runs status export decode encode explain conformance complete help"],
    ["Maintain", "doctor recover backup token retention move advance-version"],
    ["Other schemes", "schemes"],
  ]);
  expect(helps).toHaveLength(30);
});

test("every summary begins with a capital, has no period and at most 60 characters", () => {
  const summaries = helps.flatMap(commandsIn).map(({ meaning }) => meaning);
  expect(summaries).toHaveLength(32);
  for (const summary of summaries) {
    expect(summary).toMatch(/^[A-Z][a-z]*[^s],? .*[^.]$/);
    expect(summary.length, summary).toBeLessThanOrEqual(SUMMARY_LENGTH_MAX);
  }
});

test("no line of a help is wider than 80 columns, on a wide terminal or without one", () => {
  expect(helpsOnTerminal).toEqual(helps);
  const lines = helps.flatMap(({ command, lines }) => lines.map((line) => ({ command, line })));
  expect(lines.filter(({ line }) => line.length > WIDTH_MAX)).toEqual([]);
});

test("options are in groups of at most eight, alphabetically, and a flag without a value takes none", () => {
  for (const help of helps) {
    const groups = optionGroupsIn(help);
    expect(groups.flat().map(nameOf), help.command).toContain("help");
    for (const options of groups) {
      expect(options.length, help.command).toBeLessThanOrEqual(GROUP_LENGTH_MAX);
      const flags = options.map(({ term }) => term.replace(/^-+/, ""));
      expect(flags, help.command).toEqual(flags.toSorted((one, other) => one.localeCompare(other)));
      for (const { term } of options) expect(term).toMatch(/^(-\w, )?--[a-z-]+( <[a-z=]+(\.\.\.)?>)?$/);
    }
  }
});

test("every command without subcommands takes --json", () => {
  for (const help of helps.filter((each) => commandsIn(each).length === 0))
    expect(optionGroupsIn(help).flat().map(nameOf), help.command).toContain("json");
});

test("settings have an environment variable, confirmations and arguments have none", () => {
  const found = new Set<string>();
  for (const help of helps) {
    const allowed = help.command === "serve" ? [...SHARED_SETTINGS, ...SERVE_SETTINGS] : SHARED_SETTINGS;
    for (const option of optionGroupsIn(help).flat()) {
      const [, variable] = /env: (\S+)\)/.exec(option.meaning) ?? [];
      if (variable === undefined) continue;
      const name = nameOf(option);
      expect(allowed, help.command).toContain(name);
      expect(variable).toBe(`CALLNUMBER_${name.toUpperCase().replaceAll("-", "_")}`);
      found.add(name);
    }
  }
  expect([...found].sort()).toEqual([...SHARED_SETTINGS, ...SERVE_SETTINGS].sort());
  const mentioned = helps.flatMap(({ lines }) => lines.join(" ").match(/CALLNUMBER_\w+/g) ?? []);
  expect(new Set(mentioned).size).toBe(found.size + 1);
  expect(mentioned).toContain("CALLNUMBER_TOKEN");
});

/** Reports each module that a process loads, on standard error. */
const REPORT_MODULES = `import { register } from "node:module";
  register("data:text/javascript," + encodeURIComponent(\`import { writeSync } from "node:fs";
    export function load(url, context, next) { writeSync(2, url + "\\\\n"); return next(url, context); }\`));`;

test.each([
  ["--help", "none", []],
  ["next --help", "one", ["next"]],
  ["help next", "one", ["next"]],
])("%s loads the module of %s of the commands", async (words, _, expected) => {
  const hook = `data:text/javascript,${encodeURIComponent(REPORT_MODULES)}`;
  const { stdout, stderr } = await shell(`node --import ${shellLine(hook, COMMAND)} ${words}`);
  expect(stdout).toContain("Usage: callnumber");
  expect(stderr).toContain("/cli/dist/program.js");
  const loaded = [...stderr.matchAll(/\/cli\/dist\/commands\/([a-z-]+)\.js$/gm)].map(([, name]) => name);
  expect(loaded).toEqual(expected);
});

test.each([
  [["help"], "callnumber"],
  [[], "callnumber"],
  [["--help"], "callnumber"],
  [["schemes"], "callnumber schemes"],
  [["token", "help"], "callnumber token"],
  [["help", "runs"], "callnumber runs"],
  [["help", "--json", "runs"], "callnumber runs"],
  [["runs", "--help"], "callnumber runs"],
  [["help", "schemes", "generate"], "callnumber schemes generate"],
])("with --json the help of %j is JSON", async (words, name) => {
  const { code, stdout, stderr } = await callnumber([...words, "--json"]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(JSON.parse(stdout)).toMatchObject({ name, description: expect.stringMatching(/\.$/) });
});

test("the help as JSON has the options with defaults and variables, the arguments and the commands", async () => {
  const inJson = async (...words: string[]) => JSON.parse((await callnumber([...words, "--json"])).stdout);
  const { options, arguments: taken } = await inJson("help", "runs");
  expect(taken).toMatchObject([{ name: "run", isRequired: false }]);
  expect(options).toContainEqual(
    expect.objectContaining({ flags: "--namespace <name>", default: "main", variable: "CALLNUMBER_NAMESPACE" }),
  );
  const { commands } = await inJson("schemes");
  expect(commands.map((one: { name: string }) => one.name)).toContain("generate");
});

test("a value, and a command that does not exist, ask for no help", async () => {
  const unknown = await callnumber(["help", "nonsense", "--json"]);
  expect([unknown.code, unknown.stdout, JSON.parse(unknown.stderr).code]).toEqual([2, "", "misuse"]);
  const holder = await callnumber(["runs", "--holder", "help", "--coordinator", "http://127.0.0.1:1", "--json"]);
  expect(JSON.parse(holder.stderr).code).toBe("coordinator_unreachable");
});
