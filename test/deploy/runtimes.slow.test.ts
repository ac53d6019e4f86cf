/** The packed client and codec in the programs that importers use them with, each from npm and in the version named here. */
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { decodeCallNumber } from "@callnumber/protocol/codec";
import { expect, onTestFinished, type TestContext, test } from "vitest";
import { folderForTest, REPOSITORY, serve } from "../processes/command.js";
import { freePort, launch } from "../processes/server-process.js";
import { install, packForTests, registryUnavailable, run, tarballOf } from "./packed.js";

const BUN = "@oven/bun-linux-x64@1.4.5";
const DENO = "@deno/linux-x64-glibc@2.9.6";
const WORKERD = "@cloudflare/workerd-linux-64@1.20261117.1";
const JEST = "jest@30.5.2";
/** The last TypeScript with `moduleResolution: node10` and without a warning about it. */
const NODE10 = ["typescript@5.9.3", "@types/node@20.19.43", "zod@4.6.7"];
const NEXT = ["next@16.4.6", "react@19.3.1", "react-dom@19.3.1"];

const OTHER_MACHINE =
  process.platform === "linux" && process.arch === "x64" ? undefined : "the programs here are for Linux on x64";

packForTests();

test.for([
  ["Node", undefined, () => [process.execPath]],
  ["Bun", BUN, (modules: string) => [join(modules, "@oven", "bun-linux-x64", "bin", "bun")]],
  ["Deno", DENO, (modules: string) => [join(modules, "@deno", "linux-x64-glibc", "deno"), "run", "--allow-all"]],
] as const)(
  "the client generates numbers in %s, and is one module for import and require",
  async ([, packageName, command], { skip }) => {
    const directory = await programFolder({ "program.mjs": PROGRAM }, packageName ? [packageName] : [], skip);
    const [program = "", ...words] = command(join(directory, "node_modules"));
    const { url } = await serve("memory:");
    const outcome = JSON.parse(await runFor(url, directory, program, ...words, "program.mjs"));
    expect(outcome).toEqual({ runs: [1, 2], code: "client_closed", isOneClient: true, isOneCodec: true });
  },
);

test("the client and the codec load in jest with its defaults", async ({ skip }) => {
  const directory = await programFolder({ "client.test.js": JEST_TEST }, [JEST], skip);
  const { url } = await serve("memory:");
  const jest = join(directory, "node_modules", "jest", "bin", "jest.js");
  await runFor(url, directory, process.execPath, jest, "--ci");
});

test("a program in TypeScript loads the client and the codec with moduleResolution node10", async ({ skip }) => {
  const directory = await programFolder({ "program.ts": NODE10_PROGRAM }, NODE10, skip);
  const { url } = await serve("memory:");
  const modules = ["--module", "commonjs", "--moduleResolution", "node10", "--esModuleInterop"];
  const strict = ["--strict", "--exactOptionalPropertyTypes", "--skipLibCheck", "false", "--target", "es2022"];
  const tsc = join(directory, "node_modules", "typescript", "bin", "tsc");
  await run(directory, process.execPath, tsc, "program.ts", ...modules, ...strict);
  expect(await runFor(url, directory, process.execPath, "program.js")).toBe("0 client_closed\n");
});

test("the client generates numbers in Cloudflare's workerd", async ({ skip }) => {
  const directory = await programFolder({ "worker.mjs": WORKER }, [WORKERD], skip);
  const { url } = await serve("memory:");
  const port = await freePort();
  writeFileSync(join(directory, "config.capnp"), workerdConfig(port, url));
  // As wrangler does.
  const bundle = ["--bundle", "--format=esm", "--conditions=workerd,worker,browser", "--external:node:*"];
  const files = [join(directory, "worker.mjs"), `--outfile=${join(directory, "bundle.mjs")}`];
  await run(REPOSITORY, "npx", "esbuild", ...bundle, ...files);
  const program = join(directory, "node_modules", "@cloudflare", "workerd-linux-64", "bin", "workerd");
  expect(await numberFrom(port, program, ["serve", join(directory, "config.capnp")])).toMatchObject({ sequence: 0 });
});

test.for([
  ["bundled", "{}"],
  ["external", '{ serverExternalPackages: ["@callnumber/client"] }'],
] as const)("the client generates numbers in a standalone server of Next, %s", async ([, options], { skip }) => {
  const config = `export default { output: "standalone", ...${options} };\n`;
  const directory = await programFolder({ ...NEXT_FILES, "next.config.mjs": config }, NEXT, skip);
  const { url } = await serve("memory:");
  await runFor(
    url,
    directory,
    process.execPath,
    join(directory, "node_modules", "next", "dist", "bin", "next"),
    "build",
  );
  const port = await freePort();
  const environment = { PORT: String(port), HOSTNAME: "127.0.0.1", COORDINATOR: url };
  const server = join(directory, ".next", "standalone", "server.js");
  expect(await numberFrom(port, process.execPath, [server], environment)).toMatchObject({ sequence: 0 });
  expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toMatch(/<p>run (?:<!-- -->)?99<\/p>/);
});

/** A folder with a program, its packages from npm, and ours. Skips the test where npm's cannot be had. */
async function programFolder(
  files: Readonly<Record<string, string>>,
  packages: readonly string[],
  skip: TestContext["skip"],
) {
  skip(OTHER_MACHINE !== undefined, OTHER_MACHINE);
  const directory = await folderForTest();
  for (const [name, text] of Object.entries({ "package.json": '{ "private": true }\n', ...files })) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), text);
  }
  const unavailable = packages.length > 0 ? await registryUnavailable(directory, ...packages) : undefined;
  skip(unavailable !== undefined, unavailable);
  await install(directory, tarballOf("@callnumber/protocol"), tarballOf("@callnumber/client"));
  return directory;
}

/** Runs a program to its end that finds the coordinator in its environment, and nothing of ours. */
async function runFor(url: string, cwd: string, program: string, ...words: readonly string[]): Promise<string> {
  const env = { PATH: process.env["PATH"], HOME: cwd, NEXT_TELEMETRY_DISABLED: "1", COORDINATOR: url };
  return (await promisify(execFile)(program, words, { cwd, env })).stdout;
}

/** Starts a server that ends with the test, and decodes the number that it responds with. */
async function numberFrom(
  port: number,
  program: string,
  words: readonly string[],
  environment: NodeJS.ProcessEnv = {},
) {
  let number = "";
  const server = await launch({ program, words, environment }, async () => {
    number = await (await fetch(`http://127.0.0.1:${port}/number`)).text();
  });
  onTestFinished(() => server.kill());
  return decodeCallNumber(number);
}

const PROGRAM = `import { createRequire } from "node:module";
import process from "node:process";
import { ClientError, createClient } from "@callnumber/client";
import { CallNumberError, decodeCallNumber, SEQUENCE_COUNT } from "@callnumber/protocol/codec";

const required = createRequire(import.meta.url);
const client = createClient({ coordinator: process.env.COORDINATOR, holder: { name: "program" } });
const numbers = [];
while (numbers.length <= SEQUENCE_COUNT) numbers.push(await client.next());
await client.close();
const code = await client.next().catch((error) => error instanceof ClientError && error.code);
console.log(
  JSON.stringify({
    runs: [numbers[0], numbers.at(-1)].map((number) => decodeCallNumber(number).run),
    code,
    isOneClient: required("@callnumber/client").ClientError === ClientError,
    isOneCodec: required("@callnumber/protocol/codec").CallNumberError === CallNumberError,
  }),
);
`;

const JEST_TEST = `const { ClientError, createClient } = require("@callnumber/client");
const { CallNumberError, decodeCallNumber } = require("@callnumber/protocol/codec");

test("the client generates numbers", async () => {
  const client = createClient({ coordinator: process.env.COORDINATOR, holder: { name: "jest" } });
  expect(decodeCallNumber(await client.next())).toMatchObject({ run: 1, sequence: 0 });
  await client.close();
  await expect(client.next()).rejects.toThrow(ClientError);
  expect(() => decodeCallNumber("")).toThrow(CallNumberError);
});
`;

const NODE10_PROGRAM = `import { ClientError, type ClientOptions, createClient } from "@callnumber/client";
import { type CallNumber, decodeCallNumber } from "@callnumber/protocol/codec";
import { callNumberSchema } from "@callnumber/protocol/schemas";

async function main(options: ClientOptions): Promise<void> {
  const client = createClient(options);
  const number: CallNumber = callNumberSchema.parse(await client.next());
  await client.close();
  const code = await client.next().catch((error) => error instanceof ClientError && error.code);
  console.log(decodeCallNumber(number).sequence, code);
}

void main({ coordinator: process.env["COORDINATOR"], holder: { name: "node10" } });
`;

const WORKER = `import { createClient } from "@callnumber/client";

export default {
  async fetch(_request, { COORDINATOR }) {
    const client = createClient({ coordinator: COORDINATOR, holder: { name: "worker" } });
    const number = await client.next();
    await client.close();
    return new Response(number);
  },
};
`;

function workerdConfig(port: number, coordinator: string): string {
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker), (name = "internet", network = (allow = ["local"]))],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]
);
const worker :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "bundle.mjs")],
  bindings = [(name = "COORDINATOR", text = "${coordinator}")],
  compatibilityDate = "2026-09-01"
);
`;
}

const NEXT_FILES = {
  "app/layout.js": "export default ({ children }) => <html><body>{children}</body></html>;\n",
  "app/page.js": `"use client";
import { decodeCallNumber } from "@callnumber/protocol/codec";
export default () => <p>run {decodeCallNumber("2VznWE2i").run}</p>;
`,
  "app/number/route.js": `import { createClient } from "@callnumber/client";
const client = createClient({ coordinator: process.env.COORDINATOR, holder: { name: "next" } });
export const dynamic = "force-dynamic";
export const GET = async () => new Response(await client.next());
`,
};
