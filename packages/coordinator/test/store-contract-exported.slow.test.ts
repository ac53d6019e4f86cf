/** The parts and the contract of a store as the package exports them: the store in the README passes, and one that breaks the contract fails. */
import { execFile } from "node:child_process";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { folderForTest, REPOSITORY } from "../../../test/processes/command.js";

const README = readFileSync(join(REPOSITORY, "packages/coordinator/README.md"), "utf8");
/** By the names in their first lines. */
const FILES = [...README.matchAll(/^```js\n(\/\/ (my-store\S*\.mjs).*?)^```$/gms)];

/** As an author of a store would, in a project of its own; `edit` changes the store. Resolves to what Vitest reports. */
async function run(
  edit = (code: string) => code,
): Promise<{ readonly numPassedTests: number; readonly numFailedTests: number }> {
  const folder = await folderForTest();
  symlinkSync(join(REPOSITORY, "node_modules"), join(folder, "node_modules"), "junction");
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  for (const [, code = "", name = ""] of FILES) writeFileSync(join(folder, name), edit(code));
  const words = [
    join(REPOSITORY, "node_modules/vitest/vitest.mjs"),
    "run",
    "--reporter=json",
    "--outputFile=report.json",
  ];
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST")));
  const output = await new Promise((resolve) => {
    execFile(process.execPath, words, { cwd: folder, env }, (_, stdout, stderr) => resolve(`${stdout}${stderr}`));
  });
  try {
    return JSON.parse(readFileSync(join(folder, "report.json"), "utf8")) as Awaited<ReturnType<typeof run>>;
  } catch (error) {
    throw new Error(`no report: ${output}`, { cause: error });
  }
}

test("the store in the README is made of public entries, and passes the contract", async () => {
  expect(FILES.map(([, , name]) => name)).toEqual(["my-store.mjs", "my-store.test.mjs"]);
  const imported = FILES.flatMap(([, code = ""]) => [...code.matchAll(/ from "([^"]+)"/g)].map(([, from]) => from));
  expect(imported).toEqual([
    "@callnumber/coordinator/store",
    "@callnumber/coordinator/store-contract",
    "./my-store.mjs",
  ]);
  const { numPassedTests, numFailedTests } = await run();
  expect(numFailedTests).toBe(0);
  expect(numPassedTests).toBeGreaterThan(40);
});

const PAUSE = "await new Promise((resolve) => setTimeout(resolve, 1));";

test.each([
  ["writes what was decided on another state", "if (record === undefined) return found;", ""],
  [
    "writes what was decided, though others have leased since",
    "expected, change);",
    "expected, change) && change.record;",
  ],
  [
    "answers what was decided, though others have leased since",
    "own.appliedLocally(record)",
    "own.appliedLocally(change.record)",
  ],
  ["writes the leases as they were decided", "own.entriesOf(change, record)", "own.entriesOf(change, change.record)"],
  [
    "pauses between reading and writing",
    "if (record === undefined) return found;",
    `if (record === undefined) return found; ${PAUSE}`,
  ],
  [
    "pauses before it takes a report",
    "this.#set(namespace, { ledger: ledger.with(",
    `${PAUSE} this.#set(namespace, { ledger: ledger.with(`,
  ],
  [
    "pauses before it appends",
    "this.#set(namespace, { ledger: [...ledger, ...leases] });",
    `${PAUSE} this.#set(namespace, { ledger: [...ledger, ...leases] });`,
  ],
  [
    "pauses before it trims",
    "const { through, leasedAtMs, leases } = trim;",
    `const { through, leasedAtMs, leases } = trim; ${PAUSE}`,
  ],
  ["takes a report in the place of another", "|| !own.isSameProgress(ledger[at].progress, lease.progress)", ""],
  ["trims what the trim does not expect", "!own.isAsTrimExpects(trim, held)", "false"],
])("a store that %s fails the contract", async (_, right, wrong) => {
  const edit = (code: string) => code.replace(right, () => wrong);
  expect(FILES.some(([, code = ""]) => code.includes(right))).toBe(true);
  expect((await run(edit)).numFailedTests).toBeGreaterThan(0);
});
