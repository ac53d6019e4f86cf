/**
 * `npm run bench`: runs the benches, each in a vitest of its own, and prints what they found: first the figures to remember, then
 * the tables. Options: names of benches (default: all), `--write` puts the tables into docs/performance.md, `--node 24` runs the
 * comparison with other makers under that Node. Ends with 1 when a bench failed, with 2 when an option is wrong.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { nodeOfMajor } from "./node-of-major.js";
import { NODE_VARIABLE } from "./plain-process.js";
import { FOLDER_VARIABLE, type Report } from "./report.js";
import { reportAsText } from "./report-as-text.js";
import { withReport } from "./report-in-document.js";

const REPOSITORY = join(import.meta.dirname, "..", "..");
const VITEST = join(REPOSITORY, "node_modules", "vitest", "vitest.mjs");
const DOCUMENT = join(REPOSITORY, "docs", "performance.md");
const ENDING = ".bench.ts";
/** They have the figures to remember. */
const FIRST = ["peers", "guard-cost"];
/** The one whose measuring is done by a process that can be of another Node. */
const OF_ANY_NODE = "peers";
const EXIT_MISUSED = 2;

interface Found {
  readonly name: string;
  readonly hasPassed: boolean;
  /** Undefined when the bench failed, or prints by itself. */
  readonly report: Report | undefined;
  readonly output: string;
}

const { names, isToWrite, nodeMajor } = options();
const node = nodeMajor === undefined ? undefined : await nodeOfMajor(nodeMajor);
const folder = mkdtempSync(join(tmpdir(), "callnumber-bench-"));
const all: Found[] = [];
try {
  const first = names.filter((name) => FIRST.includes(name));
  for (const name of first) all.push(await run(name));
  for (const { report } of all) if (report?.headline !== undefined) console.log(`\n${report.headline}`);
  for (const found of all) show(found);
  for (const name of names.filter((other) => !first.includes(other))) {
    const found = await run(name);
    all.push(found);
    show(found);
  }
} finally {
  rmSync(folder, { recursive: true });
}
if (isToWrite) write(all.flatMap(({ hasPassed, report }) => (hasPassed && report) || []));
const failed = all.filter(({ hasPassed }) => !hasPassed).map(({ name }) => name);
if (failed.length > 0) {
  console.log(`\n${failed.length} of ${all.length} benches failed: ${failed.join(", ")}`);
  process.exitCode = 1;
}

function options() {
  try {
    const { values, positionals } = parseArgs({
      options: { write: { type: "boolean", default: false }, node: { type: "string" } },
      allowPositionals: true,
    });
    const existing = readdirSync(join(REPOSITORY, "bench"))
      .filter((file) => file.endsWith(ENDING))
      .map((file) => file.slice(0, -ENDING.length));
    const unknown = positionals.filter((name) => !existing.includes(name));
    if (unknown.length > 0)
      throw new TypeError(`there is no bench ${unknown.join(", ")}: there are ${existing.join(", ")}`);
    if (values.node !== undefined && !/^\d{2}$/.test(values.node)) {
      throw new TypeError(`--node takes a major version such as 24, not "${values.node}"`);
    }
    if (values.node !== undefined && positionals.some((name) => name !== OF_ANY_NODE)) {
      throw new TypeError(`--node is for ${OF_ANY_NODE} alone: the others measure this Node`);
    }
    const byDefault =
      values.node === undefined ? [...FIRST, ...existing.filter((name) => !FIRST.includes(name))] : [OF_ANY_NODE];
    return {
      names: positionals.length > 0 ? positionals : byDefault,
      isToWrite: values.write,
      nodeMajor: values.node,
    };
  } catch (error) {
    console.error((error as Error).message);
    process.exit(EXIT_MISUSED);
  }
}

async function run(name: string): Promise<Found> {
  console.error(`${name} …`);
  const child = spawn(
    process.execPath,
    [VITEST, "run", "--config", "vitest.long.config.ts", join("bench", `${name}${ENDING}`)],
    {
      cwd: REPOSITORY,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, [FOLDER_VARIABLE]: folder, ...(node === undefined ? {} : { [NODE_VARIABLE]: node }) },
    },
  );
  const pieces: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece: Buffer) => pieces.push(piece));
  const [code] = (await once(child, "close")) as [number | null];
  const file = join(folder, `${name}.json`);
  const report = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Report) : undefined;
  return { name, hasPassed: code === 0, report: report && renamed(report), output: Buffer.concat(pieces).toString() };
}

/** Under another Node it is a bench of its own, with a place of its own in the document. */
function renamed(report: Report): Report {
  return nodeMajor === undefined ? report : { ...report, bench: `${report.bench}-node-${nodeMajor}` };
}

function show({ hasPassed, report, output }: Found): void {
  console.log(hasPassed && report !== undefined ? reportAsText(report) : output);
}

function write(reports: readonly Report[]): void {
  if (reports.length === 0) return;
  writeFileSync(DOCUMENT, reports.reduce(withReport, readFileSync(DOCUMENT, "utf8")));
  console.log(`\ndocs/performance.md has the tables of ${reports.map(({ bench }) => bench).join(", ")}.`);
}
