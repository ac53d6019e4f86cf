/**
 * `npm run test:nodes [-- FILES]`: the quick suite, then the packed packages as an importer installs them, on each later line of Node. With
 * FILES only these. Each Node is npm's package of it, kept in node_modules/.cache, and comes first on the PATH of the tests.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const VERSIONS = ["22.23.3", "24.21.0", "26.10.0"];
const PACKAGE = `node-${process.platform}-${process.arch}`;
const VITEST = join(ROOT, "node_modules", "vitest", "vitest.mjs");
const INSTALLED = "test/deploy/installed-packages.slow.test.ts";

const files = process.argv.slice(2);
const failed = VERSIONS.filter((version) => !passesOn(version));
console.log(failed.length > 0 ? `failed on Node ${failed.join(", ")}` : `passed on Node ${VERSIONS.join(", ")}`);
process.exit(failed.length > 0 ? 1 : 0);

function passesOn(version) {
  const folder = installed(version);
  if (folder === undefined) return false;
  console.log(`\nNode ${version}`);
  const PATH = `${folder}${delimiter}${process.env.PATH}`;
  const vitest = (words, env) =>
    spawnSync(join(folder, "node"), words, { cwd: ROOT, stdio: "inherit", env: { ...process.env, ...env, PATH } })
      .status === 0;
  // As `npm test` does.
  const memory = ["--max-old-space-size=256", "--max-semi-space-size=2"];
  const isQuickGood = vitest([...memory, VITEST, "run", ...files], { MALLOC_ARENA_MAX: "2" });
  if (files.length > 0) return isQuickGood;
  return vitest([VITEST, "run", INSTALLED], { CALLNUMBER_TEST_ALL: "1" }) && isQuickGood;
}

/** The folder of that Node's program; undefined when it cannot be had. */
function installed(version) {
  const home = join(ROOT, "node_modules", ".cache", "node-versions", version);
  const folder = join(home, "node_modules", PACKAGE, "bin");
  if (existsSync(join(folder, "node"))) return folder;
  mkdirSync(home, { recursive: true });
  const words = ["install", "--prefix", home, "--ignore-scripts", "--no-audit", "--no-fund", `${PACKAGE}@${version}`];
  const { status, stderr } = spawnSync("npm", words, { cwd: home, encoding: "utf8" });
  if (status === 0) return folder;
  console.log(`Node ${version} could not be installed: npm ${words.join(" ")}\n${stderr}`);
  return undefined;
}
