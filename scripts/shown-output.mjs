/**
 * What documents show of `callnumber` is what it prints: each block of ```console after the mark <!-- output --> begins with
 * `$ callnumber …`, and the rest is that command's output. Without arguments it reports the blocks that differ; --write updates them.
 * The same for the page that lists the options. Needs a build.
 */
import "./cli-reference.mjs";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const COMMAND = join(ROOT, "packages", "cli", "bin", "callnumber.js");
const BLOCK = /(<!-- output -->\n+```console\n)\$ callnumber ([^\n]*)\n[\s\S]*?(```\n)/g;

const isWriting = process.argv.includes("--write");
const inDocs = readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" });
const documents = ["README.md", ...inDocs.map((name) => join("docs", name))];
let blockCount = 0;
const differing = [];
for (const path of documents.filter((name) => name.endsWith(".md"))) {
  const before = readFileSync(join(ROOT, path), "utf8");
  const after = before.replace(BLOCK, (block, begin, parameters, end) => {
    blockCount++;
    const shown = `${begin}$ callnumber ${parameters}\n${outputOf(parameters.split(" "))}${end}`;
    if (shown !== block) differing.push(`${path}: callnumber ${parameters}`);
    return shown;
  });
  if (isWriting && after !== before) writeFileSync(join(ROOT, path), after);
}
if (blockCount === 0) throw new Error("no document shows a command: this would see nothing");
for (const one of differing) console.log(`${isWriting ? "written" : "prints something else now"}: ${one}`);
if (!isWriting && differing.length > 0) {
  console.log("npm run shown -- --write updates the documents");
  process.exit(1);
}

/** Without CALLNUMBER_ settings and without a terminal: the same everywhere. */
function outputOf(parameters) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("CALLNUMBER_")));
  const { status, stdout, stderr } = spawnSync(process.execPath, [COMMAND, ...parameters], {
    encoding: "utf8",
    env: { ...env, NO_COLOR: "1" },
  });
  if (status !== 0) throw new Error(`callnumber ${parameters.join(" ")} ended with ${status}: ${stderr}`);
  return stdout;
}
