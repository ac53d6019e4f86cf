/** The TypeScript that documents show compiles under the strictest flags of an importer's project, and runs. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Coordinator, createServer, openStore } from "@callnumber/coordinator";
import { expect, test } from "vitest";
import { folderForTest, REPOSITORY } from "./processes/command.js";

const FLAGS = [
  "--ignoreConfig",
  "--strict",
  "--exactOptionalPropertyTypes",
  "--noUncheckedIndexedAccess",
  "--noPropertyAccessFromIndexSignature",
  "--skipLibCheck",
  "false",
  "--module",
  "nodenext",
  "--target",
  "es2022",
];

/** What the blocks leave to the reader. */
const DECLARATIONS = `
declare const messages: readonly string[];
declare function store(message: string, callNumber: string): Promise<void>;
declare const idKeptBesideTheArchive: string | undefined;
`;
const DEFINITIONS = `
globalThis.messages = ["first", "second"];
globalThis.store = async (message, callNumber) => console.log(message, callNumber);
globalThis.idKeptBesideTheArchive = undefined;
const platformFetch = globalThis.fetch;
globalThis.fetch = (url, init) => platformFetch(url.replace("http://127.0.0.1:7300", process.env.TEST_COORDINATOR), init);
`;

const blocks = ["README.md", ...readdirSync(join(REPOSITORY, "docs")).map((name) => join("docs", name))]
  .filter((path) => path.endsWith(".md"))
  .flatMap((path) => {
    const text = readFileSync(join(REPOSITORY, path), "utf8");
    return [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code as string);
  });

test("every TypeScript block of a document compiles with strict flags and runs against a coordinator", async () => {
  expect(blocks.length).toBeGreaterThan(2);
  const folder = await folderForTest();
  symlinkSync(join(REPOSITORY, "node_modules"), join(folder, "node_modules"), "junction");
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "readers.d.ts"), DECLARATIONS);
  writeFileSync(join(folder, "readers.mjs"), DEFINITIONS);
  const names = blocks.map((code, index) => {
    writeFileSync(join(folder, `block-${index}.ts`), code);
    return `block-${index}`;
  });
  const files = ["readers.d.ts", ...names.map((name) => `${name}.ts`)];
  const tsc = join(REPOSITORY, "node_modules", "typescript", "bin", "tsc");
  const node = (parameters: readonly string[], env = {}) =>
    promisify(execFile)(process.execPath, parameters, { cwd: folder, env: { ...process.env, ...env } }).catch(
      ({ stdout, stderr }: { stdout: string; stderr: string }) =>
        expect.fail(`${parameters.at(-1)}: ${stdout}${stderr}`),
    );
  // The types of Node bring Symbol.asyncDispose along, those of browsers do not.
  const inBrowsers = [...FLAGS, "--noEmit", "--lib", "es2022,dom", "--types", "", ...files];
  for (const flags of [inBrowsers, [...FLAGS, "--lib", "es2022", "--types", "node", ...files]]) {
    expect(await node([tsc, ...flags])).toEqual({ stdout: "", stderr: "" });
  }
  const { store } = await openStore({ kind: "memory" }, { create: true });
  const coordinator = new Coordinator({ store, name: "test" });
  await coordinator.initNamespace("main", { firstRun: 1 });
  const server = await createServer({ coordinator, release: "0.0.0" });
  try {
    const env = { TEST_COORDINATOR: await server.listen({ host: "127.0.0.1", port: 0 }) };
    for (const name of names) {
      expect(await node(["--import", "./readers.mjs", `${name}.js`], env)).toMatchObject({ stderr: "" });
    }
  } finally {
    await server.stop();
  }
  const { leases } = await coordinator.runs("main", { limit: 10 });
  expect(leases.length).toBeGreaterThan(1);
  expect(leases.every(({ progress }) => progress?.state === "closed")).toBe(true);
});
