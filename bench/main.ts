/**
 * `npm run bench`: runs the benchmarks, each in a vitest of its own, and prints their tables. Arguments: names of benchmarks
 * (default: all). `--write` puts the tables into docs/internals/benchmarks.md; `--quick` runs few rounds of small sizes, whose figures mean
 * nothing. Exits with 1 when a benchmark failed, with 2 when an argument is wrong.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { QUICK_VARIABLE } from "./harness.js";
import { DIRECTORY_VARIABLE, type Report, reportAsText, withReport } from "./report.js";

const REPOSITORY = join(import.meta.dirname, "..", "..");
const VITEST = join(REPOSITORY, "node_modules", "vitest", "vitest.mjs");
const DOCUMENT = join(REPOSITORY, "docs", "internals", "benchmarks.md");
const SUFFIX = ".bench.ts";
const EXIT_MISUSED = 2;

const { names, isWriting, isQuick } = options();
const directory = mkdtempSync(join(tmpdir(), "callnumber-bench-"));
const failed: string[] = [];
try {
  for (const name of names) {
    const report = await run(name);
    if (report === undefined) failed.push(name);
    else if (isWriting) writeFileSync(DOCUMENT, withReport(readFileSync(DOCUMENT, "utf8"), report));
  }
} finally {
  rmSync(directory, { recursive: true });
}
if (failed.length > 0) {
  console.log(`\n${failed.length} of ${names.length} benchmarks failed: ${failed.join(", ")}`);
  process.exitCode = 1;
}

function options() {
  try {
    const { values, positionals } = parseArgs({
      options: { write: { type: "boolean", default: false }, quick: { type: "boolean", default: false } },
      allowPositionals: true,
    });
    const existing = readdirSync(join(REPOSITORY, "bench"))
      .filter((file) => file.endsWith(SUFFIX))
      .map((file) => file.slice(0, -SUFFIX.length));
    const unknown = positionals.filter((name) => !existing.includes(name));
    if (unknown.length > 0)
      throw new TypeError(`No benchmark ${unknown.join(", ")}. There are ${existing.join(", ")}.`);
    if (values.write && values.quick)
      throw new TypeError("The figures of --quick mean nothing: run without it to --write.");
    return { names: positionals.length > 0 ? positionals : existing, isWriting: values.write, isQuick: values.quick };
  } catch (error) {
    console.error((error as Error).message);
    process.exit(EXIT_MISUSED);
  }
}

/** Prints and returns the report; prints the output of vitest and returns undefined when the benchmark failed. */
async function run(name: string): Promise<Report | undefined> {
  console.error(`${name} …`);
  const file = join("bench", `${name}${SUFFIX}`);
  const child = spawn(process.execPath, [VITEST, "run", "--config", "vitest.long.config.ts", file], {
    cwd: REPOSITORY,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, [DIRECTORY_VARIABLE]: directory, ...(isQuick ? { [QUICK_VARIABLE]: "1" } : {}) },
  });
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => output.push(chunk));
  const [code] = (await once(child, "close")) as [number | null];
  const path = join(directory, `${name}.json`);
  if (code !== 0 || !existsSync(path)) {
    console.log(Buffer.concat(output).toString());
    return undefined;
  }
  const report = JSON.parse(readFileSync(path, "utf8")) as Report;
  console.log(reportAsText(report));
  return report;
}
