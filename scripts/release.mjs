/**
 * `npm run release -- --dry-run` shows what would be published; without `--dry-run` it is published. The packages have one version, and
 * only the tarballs of `npm run pack` are published: in the workspace the packages are private, so that plain `npm publish` is rejected.
 * The Python client is not published by this: `twine upload` of its two files is a step of its own.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

const words = process.argv.slice(2);
const isDryRun = words.length === 1 && words[0] === "--dry-run";
if (words.length > 0 && !isDryRun) fail(`unknown argument ${words.join(" ")}: the only one is --dry-run`);

const target = mkdtempSync(join(tmpdir(), "callnumber-release-"));
process.on("exit", () => rmSync(target, { recursive: true }));
// Each behind those that it depends on.
const tarballs = output(process.execPath, "scripts/pack.mjs", target)
  .split("\n")
  .filter((path) => path.endsWith(".tgz"));
const versions = new Set(tarballs.map((tarball) => /-(\d[^/]*)\.tgz$/.exec(tarball)[1]));
const [version] = versions;
const problems = [
  versions.size > 1 && `the packages have several versions: ${[...versions].join(", ")}. Give all of them the same`,
  !readFileSync(join(ROOT, "CHANGELOG.md"), "utf8").includes(`\n## ${version} (20`) &&
    `CHANGELOG.md has no date for ${version}`,
  output("git", "status", "--porcelain") !== "" && "there are changes that are not committed",
  output("git", "tag", "--points-at", "HEAD") !== `v${version}` && `the commit has no tag v${version}`,
].filter(Boolean);
for (const problem of problems) console.error(`${isDryRun ? "before the release" : "error"}: ${problem}.`);
if (problems.length > 0 && !isDryRun) process.exit(1);

for (const tarball of tarballs) {
  const { status } = spawnSync("npm", ["publish", tarball, ...words], { cwd: target, stdio: "inherit" });
  if (status !== 0) fail(`npm published neither ${tarball} nor those behind it: repair the cause, then release again`);
}

function output(program, ...parameters) {
  return execFileSync(program, parameters, { cwd: ROOT, encoding: "utf8" }).trim();
}

function fail(problem) {
  console.error(`error: ${problem}.`);
  process.exit(1);
}
