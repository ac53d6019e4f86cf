/** Rules that the linter does not have: what a source file may be called, and how long it may be. */
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const NAMES_OF_NOTHING = /^(utils?|helpers?|common|types|manager|base|lib|misc)\./;
const LINE_COUNT_MAX = 350;

const packages = readdirSync(join(ROOT, "packages")).map((name) => join("packages", name));
const files = [...packages, join("clients", "python")].flatMap((name) => sourceFiles(join(name, "src")));
if (files.length === 0) throw new Error("no source file was found: this check would see nothing");

const breaches = [];
for (const file of files) {
  if (NAMES_OF_NOTHING.test(basename(file)))
    breaches.push(`${file}: the name does not describe the content; name the idea`);
  const lineCount = readFileSync(join(ROOT, file), "utf8").trimEnd().split("\n").length;
  if (lineCount > LINE_COUNT_MAX)
    breaches.push(`${file}: ${lineCount} lines; one idea for each file fits ${LINE_COUNT_MAX}`);
}
for (const breach of breaches) console.log(breach);
if (breaches.length > 0) process.exit(1);

function sourceFiles(folder) {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(tsx?|py)$/.test(name))
    .map((name) => join(folder, name));
}
