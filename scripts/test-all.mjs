/**
 * Everything, `npm run test:all`: the slow tests too, samples in full, then the long runs in their short form, the output that documents
 * show, and the quick ones on later lines of Node. Ends with the slowest files and one line of totals.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import process from "node:process";

const SHORT = { CALLNUMBER_MILLIONS: "2" };
const LONG_RUNS = ["test/faults/soak.long.ts", "test/remedies/remedies.long.ts"];
const SLOWEST_COUNT = 10;

const folder = mkdtempSync(join(tmpdir(), "callnumber-test-all-"));
const beganMs = Date.now();
const isGood = [
  vitest("tests", { CALLNUMBER_TEST_ALL: "1" }),
  vitest("long", SHORT, ["--config", "vitest.long.config.ts", "--maxWorkers=2", ...LONG_RUNS]),
  ran("node", ["scripts/shown-output.mjs"]),
  ran("node", ["scripts/test-nodes.mjs", ...process.argv.slice(2)]),
];
const reports = ["tests", "long"].map(reportNamed);
rmSync(folder, { recursive: true });

const sum = (name) => reports.reduce((before, report) => before + (report[name] ?? 0), 0);
const files = reports.flatMap(({ testResults = [] }) => testResults);
console.log("\nSlowest files, in seconds:");
for (const [seconds, name] of files
  .map(({ name, startTime, endTime }) => [(endTime - startTime) / 1000, name])
  .sort(([one], [other]) => other - one)
  .slice(0, SLOWEST_COUNT)) {
  console.log(`${seconds.toFixed(1).padStart(8)}  ${relative(process.cwd(), name)}`);
}
const failed = Math.max(sum("numFailedTests"), isGood.includes(false) ? 1 : 0);
const minutes = ((Date.now() - beganMs) / 60_000).toFixed(1);
console.log(`${sum("numPassedTests")} passed, ${failed} failed, ${sum("numPendingTests")} skipped in ${minutes} min`);
process.exit(failed > 0 ? 1 : 0);

function vitest(name, env, words = []) {
  const report = ["--reporter=default", "--reporter=json", `--outputFile.json=${join(folder, name)}.json`];
  return ran("npx", ["vitest", "run", ...report, ...words, ...process.argv.slice(2)], env);
}

function ran(program, words, env = {}) {
  return spawnSync(program, words, { stdio: "inherit", env: { ...process.env, ...env } }).status === 0;
}

function reportNamed(name) {
  try {
    return JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"));
  } catch {
    return {};
  }
}
