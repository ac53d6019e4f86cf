/**
 * Part of `npm run check`: what a program that imports the codec or the client takes along, minified and gzipped, with all that
 * they import. Node's own modules are left out, as every reader has them. And what a browser loads for the console, as it was built.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** In bytes; 1 kB is 1,000. */
const LIMITS = [
  { name: "@callnumber/protocol/codec", bytesMax: 2_000 },
  { name: "@callnumber/client", bytesMax: 10_000 },
];
/** Of the console: what every page loads before it shows anything, and all scripts together. In bytes, gzipped. */
const CONSOLE_FIRST_BYTES_MAX = 30_000;
const CONSOLE_BYTES_MAX = 30_000;
const CONSOLE = join(ROOT, "packages", "coordinator", "dist", "console");

let hasFailed = false;
for (const { name, bytesMax } of LIMITS) {
  report(name, await gzippedBytesOf(name), bytesMax);
}
weighConsole();
if (hasFailed) process.exit(1);

function weighConsole() {
  const page = readFileSync(join(CONSOLE, "index.html"), "utf8");
  const scripts = readdirSync(join(CONSOLE, "assets")).filter((name) => name.endsWith(".js"));
  const weights = scripts.map((name) => ({
    name,
    isFirst: page.includes(name),
    bytes: gzipSync(readFileSync(join(CONSOLE, "assets", name)), { level: 9 }).length,
  }));
  if (!weights.some(({ isFirst }) => isFirst))
    throw new Error("the page of the console loads no script: was it built?");
  const sum = (chosen) => chosen.reduce((bytes, weight) => bytes + weight.bytes, 0);
  for (const [what, bytes, bytesMax] of [
    ["the console's first script", sum(weights.filter(({ isFirst }) => isFirst)), CONSOLE_FIRST_BYTES_MAX],
    ["all scripts of the console", sum(weights), CONSOLE_BYTES_MAX],
  ]) {
    report(what, bytes, bytesMax);
  }
}

function report(what, bytes, bytesMax) {
  console.log(`${what}: ${bytes} of ${bytesMax} bytes gzipped`);
  if (bytes >= bytesMax) hasFailed = true;
}

/** Of everything that the module exports, as it is built: nothing is shaken out of it that a program could want. */
async function gzippedBytesOf(name) {
  const { outputFiles, metafile } = await build({
    stdin: { contents: `export * from ${JSON.stringify(name)};`, resolveDir: ROOT },
    bundle: true,
    minify: true,
    format: "esm",
    platform: "node",
    target: "es2022",
    external: ["node:*"],
    write: false,
    metafile: true,
    logLevel: "error",
    absWorkingDir: ROOT,
  });
  const [{ contents }] = outputFiles;
  const [{ inputs }] = Object.values(metafile.outputs);
  if (!Object.keys(inputs).some((path) => /dist[\\/]/.test(path)))
    throw new Error(`nothing of ${name} is in its bundle`);
  return gzipSync(contents, { level: 9 }).length;
}
