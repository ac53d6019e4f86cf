/** The documents are true: every error code explained, every link and every command real. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { ERROR_RULES } from "@callnumber/protocol/api";
import { describe, expect, test } from "vitest";
import { withReport } from "../bench/report.js";
import { CALLER_EVENTS, sumNameOf } from "../packages/coordinator/src/events/events.js";
import { folderForTest, REPOSITORY } from "./processes/command.js";

const documents = [
  ...readdirSync(REPOSITORY),
  ...readdirSync(join(REPOSITORY, "docs"), { recursive: true, encoding: "utf8" }).map((name) => join("docs", name)),
  "packages/archive/README.md",
  "clients/python/README.md",
].filter((name) => name.endsWith(".md"));
/** Source and test files under version control. */
const tracked = () =>
  spawnSync("git", ["ls-files", "packages", "test", "examples"], { cwd: REPOSITORY, encoding: "utf8" })
    .stdout.split("\n")
    .filter((name) => /\.(ts|lua)$/.test(name));
const read = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");

/** Only the command prints these: the HTTP API does not have them. */
const OF_THE_COMMAND: ReadonlySet<string> = new Set([
  "misuse",
  "port_in_use",
  "numbers_invalid",
  "export_incomplete",
  "tokens_file_invalid",
  "token_unknown",
  "token_invalid",
  "generator_state_unusable",
  "number_space_exhausted",
]);

describe("docs/reference/errors.md", () => {
  const text = read("docs/reference/errors.md");
  const section = (code: string) => new RegExp(`^### \`${code}\`\n([^#]+)`, "m").exec(text)?.[1];

  test.each(Object.entries(ERROR_RULES))(
    "explains %s with its status and its retry rule",
    (code, { httpStatus, retry }) => {
      const explanation = section(code);
      expect(explanation).toBeDefined();
      expect(explanation).toContain(`retry: ${retry}`);
      expect(explanation).toMatch(new RegExp(`HTTP ${httpStatus}|At start only`));
    },
  );

  test("explains every code that a source names, and no other", () => {
    const ofClient = [...read("packages/protocol/src/error-codes.ts").matchAll(/^ {2}\| "([a-z_]+)"/gm)];
    const named = new Set([...Object.keys(ERROR_RULES), ...ofClient.map(([, code]) => code as string)]);
    expect(named.size).toBeGreaterThan(Object.keys(ERROR_RULES).length);
    const explained = [...text.matchAll(/^### `([a-z_]+)`$/gm)].map(([, code]) => code as string);
    expect(explained.filter((code) => !OF_THE_COMMAND.has(code)).sort()).toEqual([...named].sort());
    for (const code of explained) expect(section(code)?.trim()).not.toBe("");
  });
});

test("docs/reference/findings.md has the name of each finding that can be accepted, and no other", () => {
  const sources = ["memory.ts", "sqlite/findings.ts", "redis/findings.ts", "postgres/findings.ts"]
    .map((name) => read(join("packages/coordinator/src/stores", name)))
    .join("");
  const page = read("docs/reference/findings.md");
  const named = [...sources.matchAll(/(?:override: |warn\()"([a-z-]+)"/g)].map(([, name]) => name as string);
  const shown = [...page.matchAll(/`([a-z-]+)` +\|/g)].map(([, name]) => name as string);
  expect(named.length).toBeGreaterThan(10);
  expect(shown).toEqual(expect.arrayContaining(named));
  // Settings of PostgreSQL have another form in the names that an option takes.
  const isNamed = (name: string) => [name, name.replaceAll("-", "_")].some((text) => sources.includes(`"${text}"`));
  expect(shown.filter((name) => !isNamed(name))).toEqual([]);
});

describe("docs/reference/metrics-and-events.md", () => {
  const folder = "packages/coordinator/src";
  const sources = [folder, "packages/cli/src"].flatMap((root) =>
    readdirSync(join(REPOSITORY, root), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => read(join(root, name))),
  );
  /** Those whose name is a state of the guard are written by that name. */
  const states = ["active", "recovering", "stopped"];
  const namesOf = (pattern: RegExp) => sources.flatMap((text) => [...text.matchAll(pattern)].map(([, name]) => name));
  const logged = [
    ...namesOf(/\b(?:#?log|events|#events)(?:\.(?:debug|info|warn|error)|\[[^\]]+\])\([^;]*?,\s*"([a-z_]+)",?\s*\)/g),
    ...states,
    // What sums them up is written under a name that is worked out.
    ...[...CALLER_EVENTS].map(sumNameOf),
  ];
  const counted = [...read(`${folder}/metrics/event-counts.ts`).matchAll(/^ {2}([a-z_]+): \(counts/gm)].map(
    ([, name]) => name,
  );
  const table = read("docs/reference/metrics-and-events.md").split("## The log")[1]?.split("###")[0] ?? "";
  const documented = [...table.matchAll(/^\| `([a-z_]+)`/gm)].map(([, name]) => name);

  test("lists every event that a source writes", () => {
    expect(logged.length).toBeGreaterThan(20);
    expect([...new Set(logged)].filter((name) => !documented.includes(name))).toEqual([]);
  });

  test("lists no event that no source writes or counts, and none twice", () => {
    expect(documented.filter((name) => !logged.includes(name) && !counted.includes(name))).toEqual([]);
    expect(new Set(documented).size).toBe(documented.length);
  });

  test("the metrics count no event that is not listed", () => {
    expect(counted.length).toBeGreaterThan(10);
    expect(counted.filter((name) => !documented.includes(name))).toEqual([]);
  });
});

test("docs/reference/cli.md lists the commands and options that the program has", () => {
  const script = join(REPOSITORY, "scripts/cli-reference.mjs");
  const { status, stdout, stderr } = spawnSync(process.execPath, [script], { encoding: "utf8" });
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "", stderr: "" });
});

describe("docs/guarantees.md", () => {
  const ids = [...read("docs/guarantees.md").matchAll(/^- \*\*(G\d+)\. /gm)].map(([, id]) => id as string);
  const rows = [...read("docs/internals/proofs.md").matchAll(/^\| (G\d+) +\| (.*) \|$/gm)];
  /** By guarantee: the files that name it in their heads. */
  const naming = (id: string) =>
    tracked().filter((file) => new RegExp(`Guarantees: [^\n]*\\b${id}\\b`).test(read(file)));

  test("numbers its guarantees", () => {
    expect(ids).toEqual(ids.map((_, index) => `G${index + 1}`));
    expect(ids.length).toBeGreaterThan(9);
  });

  test("each guarantee has a row of files that enforce it, and each of them names it", () => {
    expect(rows.map(([, id]) => id)).toEqual(ids);
    for (const [, id = "", cell = ""] of rows) {
      const files = [...cell.matchAll(/`([^`]+)`/g)].map(([, file]) => file as string);
      expect(files, id).not.toEqual([]);
      expect(naming(id), id).toEqual(expect.arrayContaining(files));
    }
  });

  test.each(ids)("%s is shown by a test of its package and by a fault or the simulation", (id) => {
    const tests = naming(id).filter((file) => /(^|\/)test\//.test(file));
    expect(tests.filter((file) => file.startsWith("packages/"))).not.toEqual([]);
    expect(tests.filter((file) => /^test\/(faults|simulation)\//.test(file))).not.toEqual([]);
  });
});

describe("docs/internals/benchmarks.md", () => {
  const text = read("docs/internals/benchmarks.md");
  const begins = [...text.matchAll(/<!-- bench:(\S+) -->/g)].map(([, name]) => name as string);

  test("has a place for the report of each benchmark, and no other", () => {
    const benches = readdirSync(join(REPOSITORY, "bench"))
      .filter((name) => name.endsWith(".bench.ts"))
      .map((name) => name.slice(0, -".bench.ts".length));
    expect([...begins].sort()).toEqual(benches.sort());
  });

  test.each(begins)("takes a report of %s into its place and leaves the rest as it is", (bench) => {
    const table = { columns: ["way", "figure"], rows: [["a way", "42"]] };
    const written = withReport(text, {
      bench,
      sections: [{ heading: "A heading", sentences: ["A sentence.", "word ".repeat(30).trimEnd()], table }],
    });
    const [before, after] = [text.split(`<!-- bench:${bench} -->`)[0], text.split(`<!-- /bench:${bench} -->`)[1]];
    const twoLines = `${"word ".repeat(20).trimEnd()}\n${"word ".repeat(10).trimEnd()}`;
    const head = `${before}<!-- bench:${bench} -->\n\n### A heading\n\nA sentence.\n\n${twoLines}\n\n| way `;
    expect(written.startsWith(head)).toBe(true);
    expect(written.endsWith(`| a way |     42 |\n\n<!-- /bench:${bench} -->${after}`)).toBe(true);
    expect(() => withReport(written.replace(`<!-- /bench:${bench} -->`, ""), { bench, sections: [] })).toThrow(
      /one place/,
    );
  });
});

describe("every document", () => {
  test("is found", () => {
    expect(documents).toEqual(
      expect.arrayContaining([
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "docs/reference/errors.md",
      ]),
    );
  });

  test.each(documents)("%s links only to what is there", (path) => {
    const links = [...read(path).matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map(([, link]) => link as string);
    const missing = links.filter(
      (link) => !/^https?:/.test(link) && !existsSync(resolve(REPOSITORY, dirname(path), link)),
    );
    expect(missing).toEqual([]);
  });

  test.each(documents)("%s names only files that are there", (path) => {
    const named = [...read(path).matchAll(/`((?:packages|test|docs|examples|scripts|deploy)\/[\w./-]+)`/g)].map(
      ([, file]) => file as string,
    );
    expect(named.filter((file) => !existsSync(join(REPOSITORY, file)))).toEqual([]);
  });

  test.each(documents)("%s shows only JavaScript that this Node can read", async (path) => {
    const folder = await folderForTest();
    const snippets = [...read(path).matchAll(/```js\n([\s\S]*?)```/g)].map(([, code]) => code as string);
    for (const [index, code] of snippets.entries()) {
      const file = join(folder, `${index}.mjs`);
      writeFileSync(file, code);
      const { status, stderr } = spawnSync(process.execPath, ["--check", file], { encoding: "utf8" });
      expect(status, stderr).toBe(0);
    }
  });

  test.each(documents)("%s runs only npm scripts that exist", (path) => {
    const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
    const named = [
      ...read(path).matchAll(
        /npm (?:run )?(test|demo|check|format|build|bootstrap|bench|faults|shown|soak|simulate)\b/g,
      ),
    ].map(([, name]) => name as string);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });
});
