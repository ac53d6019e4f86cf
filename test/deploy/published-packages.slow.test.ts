/** The packages as `npm run pack` makes them: what they contain, and that they install and run outside of the repository. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { folderForTest, REPOSITORY, serveProcessWith } from "../processes/command.js";
import { ownServerUnavailable, startRedisServer } from "../redis/test-redis.js";
import { install, packForTests, run, tarballOf, tarballs, version } from "./packed.js";

const COMMAND_PACKAGE = "callnumber";
const ONLY_ESM = ["@callnumber/schemes", "@callnumber/coordinator"];
const LIBRARIES = ["@callnumber/protocol", "@callnumber/client", ...ONLY_ESM];
const INSTALLED_BYTES_MAX = 25_000_000;

packForTests();

test.each([...LIBRARIES, COMMAND_PACKAGE])(
  "the package %s contains its license, README and built files, and neither maps nor sources",
  async (name) => {
    const paths = (await run(tarballs, "tar", "-tf", tarballOf(name))).trim().split("\n");
    const expected = ["LICENSE", "README.md", "package.json"].map((path) => `package/${path}`);
    expect(paths).toEqual(expect.arrayContaining([...expected, expect.stringMatching(/^package\/dist\/.*\.js$/)]));
    // Maps lead to sources that are not there.
    const own =
      /^package\/(?:LICENSE|LICENSES\.md|README\.md|package\.json|bin\/[\w.-]+\.js|lua\/[\w.-]+\.lua|test-vectors\/[\w.-]+|prebuilds\/.*\.node|(?:cjs|dist)\/.*[^/])$/;
    expect(paths.filter((path) => !own.test(path) || /(?:\.map|\.tsbuildinfo)$|\/\./.test(path))).toEqual([]);
    const manifest = JSON.parse(await run(tarballs, "tar", "-xOf", tarballOf(name), "package/package.json"));
    expect(manifest).toMatchObject({ name, version, license: "MIT", engines: { node: ">=20.19" } });
    expect(JSON.stringify(manifest)).not.toContain("workspace:");
    const license = await run(tarballs, "tar", "-xOf", tarballOf(name), "package/LICENSE");
    expect(license).toBe(readFileSync(join(REPOSITORY, "LICENSE"), "utf8"));
  },
);

test("the command installs without a network, alone and in 25 MB, and runs on both stores", async ({ skip }) => {
  const directory = await folderForTest();
  await install(directory, "--offline", tarballOf(COMMAND_PACKAGE));
  expect(readdirSync(join(directory, "node_modules")).filter((name) => !name.startsWith("."))).toEqual(["callnumber"]);
  expect(bytesIn(join(directory, "node_modules"))).toBeLessThan(INSTALLED_BYTES_MAX);
  const licenses = readFileSync(join(directory, "node_modules", "callnumber", "LICENSES.md"), "utf8");
  for (const name of ["fastify", "ioredis", "zod", "pino", "preact", "@photostructure/sqlite"])
    expect(licenses).toMatch(new RegExp(`^## ${name} [0-9.]+$`, "m"));
  const elsewhere = await folderForTest();
  const script = join(directory, "node_modules", "callnumber", "bin", "callnumber.js");
  const callnumber = (...words: readonly string[]) => run(elsewhere, process.execPath, script, ...words);
  expect(await callnumber("--version")).toBe(`${version}\n`);
  expect(await callnumber("decode", "2VznWE2i")).toContain("99");
  expect(await callnumber("schemes", "list")).toContain("SCHEME");

  const serveOn = async (store: string, ...more: readonly string[]) => {
    const checkpoints = ["--checkpoint-dir", join(elsewhere, "checkpoints")];
    const { url, stop } = await serveProcessWith({ script }, store, ...checkpoints, ...more);
    const numbers = await callnumber("next", "-n", "3", "--coordinator", url);
    expect(numbers).toMatch(/^(?:[0-9A-Za-z]{8}\n){3}$/);
    expect(await (await fetch(`${url}/console/`)).text()).toContain("<script");
    expect(await (await fetch(`${url}/openapi.json`)).json()).toMatchObject({ openapi: expect.any(String) });
    expect(await stop()).toBe(0);
  };
  await serveOn(`sqlite:${join(elsewhere, "store.db")}`, "--create");
  const reason = ownServerUnavailable();
  skip(reason !== undefined, reason);
  const { url } = await startRedisServer({ config: { appendonly: "yes" } });
  await callnumber("init", "--store", url, "--checkpoint-dir", join(elsewhere, "checkpoints"));
  await serveOn(url);
});

test("the libraries install for the Node that they name, and a program imports, requires and type-checks them", async () => {
  const directory = await folderForTest();
  writeFileSync(join(directory, "package.json"), '{ "private": true }');
  await install(directory, ...LIBRARIES.map(tarballOf));
  writeFileSync(join(directory, "program.mts"), PROGRAM);
  writeFileSync(join(directory, "program.cjs"), 'console.log(typeof require("@callnumber/client").createClient);\n');
  expect(await run(directory, process.execPath, "program.cjs")).toBe("function\n");
  const tsc = join(REPOSITORY, "node_modules", ".bin", "tsc");
  const types = ["--typeRoots", join(REPOSITORY, "node_modules", "@types"), "--types", "node"];
  const strict = ["--strict", "--exactOptionalPropertyTypes", "--skipLibCheck", "false", "--target", "es2022"];
  const kinds = [
    ["node16", "node16"],
    ["nodenext", "nodenext"],
    ["esnext", "bundler"],
  ] as const;
  for (const [module, resolution] of kinds) {
    const modules = ["--module", module, "--moduleResolution", resolution, "--lib", "es2023,esnext.disposable"];
    await run(directory, tsc, "program.mts", ...types, ...strict, ...modules);
  }
  expect(await run(directory, process.execPath, "program.mjs")).toBe("2VznWE2i 1\n");
});

// Those of the others resolve everywhere: `npm run check`.
test.each(ONLY_ESM)("the types of %s resolve where ES modules do", async (name) => {
  await run(REPOSITORY, "npx", "attw", "--profile", "esm-only", "--format", "ascii", tarballOf(name));
});

test("a browser bundle of the codec is small, and has the ES module even where it is required", async () => {
  const directory = await folderForTest();
  await install(directory, "--omit=dev", tarballOf("@callnumber/protocol"));
  writeFileSync(join(directory, "page.js"), 'export { decodeCallNumber } from "@callnumber/protocol/codec";\n');
  const bundled = (...words: string[]) =>
    run(REPOSITORY, "npx", "esbuild", "--bundle", "--format=esm", "--platform=browser", ...words);
  const bytes = (await bundled("--minify", join(directory, "page.js"))).length;
  console.log(`a browser bundle that decodes call numbers: ${bytes} bytes`);
  expect(bytes).toBeLessThan(5_000);
  // Otherwise a bundle that does both would hold two copies.
  writeFileSync(join(directory, "required.js"), 'console.log(require("@callnumber/protocol/codec"));\n');
  for (const page of ["page.js", "required.js"]) {
    const text = await bundled(join(directory, page));
    expect(text).toContain("@callnumber/protocol/dist/codec.js");
    expect(text).not.toContain("@callnumber/protocol/cjs/");
  }
});

test("a release has all packages in one version, and plain npm publishes none", async () => {
  const release = await settled(REPOSITORY, process.execPath, "scripts/release.mjs", "--dry-run");
  const published = release.stdout.split("\n").filter((line) => line.startsWith("+ "));
  expect(published).toEqual([...LIBRARIES, COMMAND_PACKAGE].map((name) => `+ ${name}@${version}`));
  expect(await settled(REPOSITORY, process.execPath, "scripts/release.mjs", "--tag")).toMatchObject({
    code: 1,
    stdout: "",
  });
  // Logged in, at a registry that does not exist.
  const registry = ["--registry", "http://127.0.0.1:1/", "--//127.0.0.1:1/:_authToken=x", "--fetch-retries=0"];
  const directories = ["protocol", "client", "schemes", "coordinator", "cli"].map((name) =>
    join(REPOSITORY, "packages", name),
  );
  for (const { stderr } of await Promise.all(directories.map((cwd) => settled(cwd, "npm", "publish", ...registry))))
    expect(stderr).toContain("npm error code EPRIVATE");
});

const PROGRAM = `import { createClient } from "@callnumber/client";
import { Coordinator, openStore, parseStoreUrl } from "@callnumber/coordinator";
import { decodeCallNumber, encodeCallNumber } from "@callnumber/protocol/codec";

const { store } = await openStore(parseStoreUrl("memory:"), { create: true });
const coordinator = new Coordinator({ store, name: "program" });
await coordinator.initNamespace("main");
await using client = createClient({ source: coordinator, namespace: "main", holder: { name: "program" } });
const { run } = decodeCallNumber(await client.next());
console.log(encodeCallNumber({ version: 0, run: 99, sequence: 345 }), run);
`;

function settled(cwd: string, program: string, ...words: readonly string[]) {
  return promisify(execFile)(program, words, { cwd }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, stdout, stderr }),
  );
}

function bytesIn(directory: string): number {
  const names = readdirSync(directory, { recursive: true, encoding: "utf8" });
  return names.reduce((sum, name) => {
    const stats = statSync(join(directory, name));
    return sum + (stats.isFile() ? stats.size : 0);
  }, 0);
}
