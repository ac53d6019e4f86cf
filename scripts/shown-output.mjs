/**
 * What documents show of `callnumber` is what it prints: each block of ```console after the mark <!-- output --> begins with
 * `$ callnumber …`, and the rest is that command's output. Without arguments it reports the blocks that differ; --write updates them.
 * The commands of a block after <!-- session --> run one after the other, where the package is installed; `…` stands for any output.
 * The same for the page that lists the options. Needs a build.
 */
import "./cli-reference.mjs";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const COMMAND = join(ROOT, "packages", "cli", "bin", "callnumber.js");
const BLOCK = /(<!-- output -->\n+```console\n)\$ callnumber ([^\n]*)\n[\s\S]*?(```\n)/g;
const SESSION = /<!-- session -->\n+```console\n(\$ [\s\S]*?)```\n/g;
const COMMAND_OF_SESSION = /^\$ ((?:.*\\\n)*.*)\n/gm;
/** Of the coordinator in sessions. The machine may use it: another one takes its place. */
const PORT = "7443";

const isWriting = process.argv.includes("--write");
const inDocs = readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" });
const documents = ["README.md", ...inDocs.map((name) => join("docs", name))];
let blockCount = 0;
let sessionCount = 0;
const differing = [];
for (const path of documents.filter((name) => name.endsWith(".md"))) {
  const before = readFileSync(join(ROOT, path), "utf8");
  const after = before.replace(BLOCK, (block, begin, parameters, end) => {
    blockCount++;
    const shown = `${begin}$ callnumber ${parameters}\n${outputOf(process.execPath, [COMMAND, ...parameters.split(" ")])}${end}`;
    if (shown !== block) differing.push(`${path}: callnumber ${parameters}`);
    return shown;
  });
  for (const [, session] of before.matchAll(SESSION)) {
    sessionCount++;
    const shown = session
      .replace(COMMAND_OF_SESSION, "")
      .replace(/[^\w\s…]/g, "\\$&")
      .replaceAll("…", "[\\s\\S]*");
    const printed = await outputOfSession(session);
    if (!new RegExp(`^${shown}$`).test(printed)) throw new Error(`${path}: the session prints\n${printed}`);
  }
  if (isWriting && after !== before) writeFileSync(join(ROOT, path), after);
}
if (blockCount === 0 || sessionCount === 0) throw new Error("no document shows a command: this would see nothing");
for (const one of differing) console.log(`${isWriting ? "written" : "prints something else now"}: ${one}`);
if (!isWriting && differing.length > 0) {
  console.log("npm run shown -- --write updates the documents");
  process.exit(1);
}

/** Without CALLNUMBER_ settings and without a terminal: the same everywhere. */
function outputOf(program, words, cwd) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("CALLNUMBER_")));
  const { status, stdout, stderr } = spawnSync(program, words, {
    cwd,
    encoding: "utf8",
    env: { ...env, NO_COLOR: "1" },
  });
  if (status !== 0) throw new Error(`${words.join(" ")} ended with ${status}: ${stderr}`);
  return stdout;
}

/** In an empty folder with the installed command. A command in the background listens before the next one runs, and ends with the last. */
async function outputOfSession(session) {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const port = String(probe.address().port);
  probe.close();
  const untilItListens = `while ! (: < /dev/tcp/127.0.0.1/${port}) 2> /dev/null; do kill -0 $!; sleep 0.1; done`;
  const commands = [...session.replaceAll(PORT, port).matchAll(COMMAND_OF_SESSION)].map(([, command]) =>
    command.endsWith("&") ? `${command}\n${untilItListens}` : command,
  );
  const folder = mkdtempSync(join(tmpdir(), "callnumber-session-"));
  try {
    mkdirSync(join(folder, "node_modules", ".bin"), { recursive: true });
    symlinkSync(COMMAND, join(folder, "node_modules", ".bin", "callnumber"));
    return outputOf("bash", ["-ec", ["trap 'kill $(jobs -p)' EXIT", ...commands].join("\n")], folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
