/** The code that documents show: TypeScript compiles under the strictest flags of an importer's project, and all of it runs. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { createClient } from "@callnumber/client";
import { Coordinator, createServer, openStore } from "@callnumber/coordinator";
import { encodeCallNumber, isCallNumber } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { folderForTest, REPOSITORY, serve } from "./processes/command.js";

const FLAGS = (
  "--ignoreConfig --strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --noPropertyAccessFromIndexSignature " +
  "--skipLibCheck false --module nodenext --target es2022"
).split(" ");

/** What the blocks leave to the reader. */
const DECLARATIONS = `
declare const messages: readonly string[];
declare function store(message: string, callNumber: string): Promise<void>;
declare const idKeptWithTheArchive: string | undefined;
`;
const DEFINITIONS = `
globalThis.messages = ["first", "second"];
globalThis.store = async (message, callNumber) => console.log(message, callNumber);
globalThis.idKeptWithTheArchive = undefined;
const platformFetch = globalThis.fetch;
globalThis.fetch = (url, init) => platformFetch(url.replace("http://127.0.0.1:7300", process.env.TEST_COORDINATOR), init);
`;

const inDocs = readdirSync(join(REPOSITORY, "docs"), { recursive: true, encoding: "utf8" });
const blocks = ["README.md", ...inDocs.map((name) => join("docs", name))]
  .filter((path) => path.endsWith(".md"))
  .flatMap((path) => {
    const text = readFileSync(join(REPOSITORY, path), "utf8");
    return [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code as string);
  });

async function folderOfReader(): Promise<string> {
  const folder = await folderForTest();
  symlinkSync(join(REPOSITORY, "node_modules"), join(folder, "node_modules"), "junction");
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "readers.mjs"), DEFINITIONS);
  return folder;
}

test("every TypeScript block of a document compiles with strict flags and runs against a coordinator", async () => {
  expect(blocks.length).toBeGreaterThan(2);
  const folder = await folderOfReader();
  writeFileSync(join(folder, "readers.d.ts"), DECLARATIONS);
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
  const server = createServer({ coordinator, release: "0.0.0" });
  try {
    const env = { TEST_COORDINATOR: await server.listen({ host: "127.0.0.1", port: 0 }) };
    // Answered when all routes are loaded: that takes this process more than two seconds on a busy machine, and a client then warns.
    await fetch(`${env.TEST_COORDINATOR}/healthz`);
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

test.each(["SIGINT", "SIGTERM"] as const)(
  "the tutorial's importer that waits for a coordinator ends with status 0 and one line after %s",
  async (signal) => {
    const document = readFileSync(join(REPOSITORY, "docs", "tutorial", "first-importer.md"), "utf8");
    const [, code = ""] = /```js\n(.*?)```/s.exec(document) ?? [];
    const folder = await folderOfReader();
    writeFileSync(join(folder, "import.mjs"), code);
    const unavailable = createHttpServer((_, response) => response.writeHead(503).end()).listen(0, "127.0.0.1");
    await once(unavailable, "listening");
    const { port } = unavailable.address() as AddressInfo;
    const options = { cwd: folder, env: { ...process.env, TEST_COORDINATOR: `http://127.0.0.1:${port}` } };
    const importing = promisify(execFile)(process.execPath, ["--import", "./readers.mjs", "import.mjs"], options);
    unavailable.once("request", () => importing.child.kill(signal));
    const output = await importing.finally(() => unavailable.close());
    expect(output).toEqual({ stdout: "", stderr: "Stopped by a signal.\n" });
  },
);

/** The page for missing messages, as docs/how-to/show-missing-messages.md gives it to archives: copied out of the document. */
function whyMissingAt(coordinator: string): (callNumber: string) => Promise<string> {
  const document = readFileSync(join(REPOSITORY, "docs", "how-to", "show-missing-messages.md"), "utf8");
  const [, example = ""] = /```js\n[^`]*?(const COORDINATOR.*?)```/s.exec(document) ?? [];
  expect(example).toContain("http://127.0.0.1:7300");
  const body = `${example.replace("http://127.0.0.1:7300", coordinator)}; return whyMissing;`;
  return new Function("isCallNumber", body)(isCallNumber);
}

test("an archive's page denies a message only when there never was one, and is shown without a coordinator, too", async () => {
  const { url, stop } = await serve("memory:", "--public-inspect");
  const client = createClient({ coordinator: url, holder: { name: "importer" } });
  const made = await client.next();
  await client.close();
  const whyMissing = whyMissingAt(url);
  expect(await whyMissing(made)).toMatch(/may have been removed/);
  expect(await whyMissing(encodeCallNumber({ version: 0, run: 1, sequence: 1 }))).toMatch(/There never was/);
  for (const never of ["2VznWE2i", "nonsense!", "a/b?c#d"]) expect(await whyMissing(never)).toMatch(/There never was/);
  await stop();
  expect(await whyMissing("zzzzzzzz")).toMatch(/There never was/);
  expect(await whyMissing("2VznWE2i")).toMatch(/may have been removed/);
});
