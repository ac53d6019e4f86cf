/**
 * Part of `npm run check`: the size of the codec and of the client, minified and gzipped, with all that they import except Node's own
 * modules. And what a browser loads for the console, as it was built.
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
  { name: "@callnumber/client", bytesMax: 10_800 },
];
/** All scripts of the console, gzipped. */
const CONSOLE_BYTES_MAX = 30_000;
const CONSOLE = join(ROOT, "packages", "coordinator", "dist", "console");

let hasFailed = false;
for (const { name, bytesMax } of LIMITS) {
  report(name, await gzippedBytesOf(name), bytesMax);
}
const assets = join(CONSOLE, "assets");
const scripts = readdirSync(assets).filter((name) => name.endsWith(".js"));
if (scripts.length === 0) throw new Error("the console has no script: was it built?");
const gzipped = scripts.map((name) => gzipSync(readFileSync(join(assets, name)), { level: 9 }).length);
report(
  "all scripts of the console",
  gzipped.reduce((sum, bytes) => sum + bytes, 0),
  CONSOLE_BYTES_MAX,
);
if (hasFailed) process.exit(1);

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
