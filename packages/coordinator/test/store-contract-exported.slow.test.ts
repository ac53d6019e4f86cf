/** The contract of a store as the package exports it: the example in the README runs it on a store, and a store that breaks it fails. */
import { execFile } from "node:child_process";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { folderForTest, REPOSITORY } from "../../../test/processes/command.js";

const README = readFileSync(join(REPOSITORY, "packages/coordinator/README.md"), "utf8");
const EXAMPLE = [...README.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code as string);

/** As an author of a store would, in a project of its own. Resolves to what Vitest reports. */
async function run(code: string): Promise<{ readonly numPassedTests: number; readonly numFailedTests: number }> {
  const folder = await folderForTest();
  symlinkSync(join(REPOSITORY, "node_modules"), join(folder, "node_modules"), "junction");
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "my-store.test.mjs"), code);
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

test("the example of the README runs the contract on a store, and it passes", async () => {
  const code = EXAMPLE.find((one) => one.includes("describeStoreContract")) ?? "";
  const { numPassedTests, numFailedTests } = await run(code);
  expect(numFailedTests).toBe(0);
  expect(numPassedTests).toBeGreaterThan(40);
  const forgetful = "return { store: Object.assign(store, { listNamespaces: async () => [] }),";
  expect((await run(code.replace("return { store,", forgetful))).numFailedTests).toBeGreaterThan(0);
});
