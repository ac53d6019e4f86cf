/**
 * Part of `npm run check`: what a program that imports the codec or the client takes along, minified and gzipped, with all that
 * they import. Node's own modules are left out, as every reader has them.
 */
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** In bytes; 1 kB is 1,000. */
const LIMITS = [
  { name: "@callnumber/protocol/codec", bytesMax: 2_000 },
  { name: "@callnumber/client", bytesMax: 10_000 },
];
/** So many of the largest files are named when the limit is passed. */
const SHOWN_COUNT = 5;

let hasFailed = false;
for (const { name, bytesMax } of LIMITS) {
  const { gzipped, minified, files } = await sizeOf(name);
  console.log(`${name}: ${grouped(gzipped)} of ${grouped(bytesMax)} bytes gzipped, ${grouped(minified)} minified`);
  if (gzipped < bytesMax) continue;
  hasFailed = true;
  console.log(
    [
      `  It must stay below ${grouped(bytesMax)} bytes and has ${grouped(gzipped - bytesMax)} too many. Minified, before gzip, it holds:`,
      ...files.slice(0, SHOWN_COUNT).map(({ path, bytes }) => `    ${grouped(bytes).padStart(7)}  ${path}`),
      "  Look there for what could go, or for an import that brings in more than it should. Raise the limit in scripts/size.mjs only",
      "  for what a reader or an importer gains by it, and change the figure in the documents with it.",
    ].join("\n"),
  );
}
if (hasFailed) process.exit(1);

/** Everything the module exports, as it is built: nothing is shaken out of it that somebody could want. */
async function sizeOf(name) {
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
  const files = Object.entries(inputs)
    .map(([path, { bytesInOutput }]) => ({ path: path.replaceAll("\\", "/"), bytes: bytesInOutput }))
    .sort((a, b) => b.bytes - a.bytes);
  if (!files.some(({ path }) => path.includes("dist/"))) throw new Error(`nothing of ${name} was found in its bundle`);
  return { gzipped: gzipSync(contents, { level: 9 }).length, minified: contents.length, files };
}

function grouped(value) {
  return value.toLocaleString("en-US");
}
