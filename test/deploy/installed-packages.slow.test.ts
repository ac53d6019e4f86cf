/** The packages as `npm run pack` makes them, installed outside of the repository, on the Node that runs the tests. */
import { spawn } from "node:child_process";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { folderForTest, REPOSITORY, serveProcessWith } from "../processes/command.js";
import { ownServerUnavailable, startRedisServer } from "../redis/test-redis.js";
import {
  ARCHIVE_PACKAGE,
  COMMAND_PACKAGE,
  install,
  LIBRARIES,
  packForTests,
  run,
  tarballOf,
  version,
} from "./packed.js";

const INSTALLED_BYTES_MAX = 25_000_000;

packForTests();

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
  expect(await callnumber("explain", "store_locked")).toContain("Fix: ");
  await install(elsewhere, "--global", "--prefix", elsewhere, "--offline", tarballOf(COMMAND_PACKAGE));
  expect(readFileSync(join(elsewhere, "share", "man", "man1", "callnumber.1"), "utf8")).toContain(
    "explain store_locked",
  );

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

test("the archive installs without a network, with the command, and imports, lists links and shows its help", async () => {
  const directory = await folderForTest();
  await install(directory, "--offline", tarballOf(COMMAND_PACKAGE), tarballOf(ARCHIVE_PACKAGE));
  const modules = join(directory, "node_modules");
  expect(readdirSync(modules).filter((name) => !name.startsWith("."))).toEqual([COMMAND_PACKAGE, ARCHIVE_PACKAGE]);
  expect(bytesIn(join(modules, ARCHIVE_PACKAGE))).toBeLessThan(INSTALLED_BYTES_MAX);
  const licenses = readFileSync(join(modules, ARCHIVE_PACKAGE, "LICENSES.md"), "utf8");
  for (const name of ["postal-mime", "zod", "@photostructure/sqlite"])
    expect(licenses).toMatch(new RegExp(`^## ${name} [0-9.]+$`, "m"));
  expect(await run(directory, "npx", "callnumber-archive", "--help")).toContain("callnumber-archive <command>");
  const script = join(modules, COMMAND_PACKAGE, "bin", "callnumber.js");
  const { url, stop } = await serveProcessWith({ script }, "memory:");
  writeFileSync(join(directory, "one.mbox"), "From a Mon Jan  5 10:00:00 2015\nMessage-ID: <1@example.org>\n\nOne.\n");
  const archive = (...words: readonly string[]) =>
    run(directory, "npx", ARCHIVE_PACKAGE, ...words, "--archive", "mail.db");
  expect(await archive("import", "one.mbox", "--coordinator", url)).toMatch(/stored now +1 message/);
  expect(await archive("links", "hyperkitty", "--url", "/list/a@example.org/")).toMatch(/^2 links added/);
  const readerScript = join(modules, ARCHIVE_PACKAGE, "bin", "callnumber-archive.js");
  const reader = spawn(process.execPath, [readerScript, "serve", "--archive", "mail.db", "--port", "0"], {
    cwd: directory,
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void reader.kill());
  for await (const line of createInterface({ input: reader.stdout })) {
    const address = /http:\/\/\S+?(?=\/$)/.exec(line)?.[0];
    if (address === undefined) continue;
    const home = await (await fetch(address)).text();
    const [path = "/"] = /\/message\/\w{8}/.exec(home) ?? [];
    // The text is read in a thread, which has a file of its own.
    expect(await (await fetch(address + path)).text()).toContain("One.");
    break;
  }
  expect(await stop()).toBe(0);
});

test("the libraries install for the Node that they name, and a program imports, requires and type-checks them", async () => {
  const directory = await folderForTest();
  writeFileSync(join(directory, "package.json"), '{ "private": true }');
  await install(directory, ...LIBRARIES.map(tarballOf));
  writeFileSync(join(directory, "program.mts"), PROGRAM);
  writeFileSync(join(directory, "program.cjs"), REQUIRING_PROGRAM);
  expect(await run(directory, process.execPath, "program.cjs")).toBe("function true\n");
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

const REQUIRING_PROGRAM = `const { ClientError, createClient } = require("@callnumber/client");
import("@callnumber/client").then((imported) => console.log(typeof createClient, imported.ClientError === ClientError));
`;

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

function bytesIn(directory: string): number {
  const names = readdirSync(directory, { recursive: true, encoding: "utf8" });
  return names.reduce((sum, name) => {
    const stats = statSync(join(directory, name));
    return sum + (stats.isFile() ? stats.size : 0);
  }, 0);
}
