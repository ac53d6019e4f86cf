/**
 * `npm run test:nodes [-- FILES]`: on each later line of Node what can differ between them, then the packed packages as an importer installs
 * them. With FILES only these. The rules, the texts and the tables compute the same on each Node, and run on one. Each Node is npm's package
 * of it, kept in node_modules/.cache, and comes first on the PATH of the tests.
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

/** Fetch, timers, threads and snapshots; files, locks and SQLite; sockets and TLS; streams, signals and imports of the commands. */
const DIFFERING = [
  "packages/client",
  "packages/protocol",
  "packages/coordinator/test/checkpoint.test.ts",
  "packages/coordinator/test/event-streams.test.ts",
  "packages/coordinator/test/export-route.test.ts",
  "packages/coordinator/test/failing-files.test.ts",
  "packages/coordinator/test/http",
  "packages/coordinator/test/redis-store.test.ts",
  "packages/coordinator/test/sqlite-",
  "packages/cli/test/encode-decode.test.ts",
  "packages/cli/test/follow.test.ts",
  "packages/cli/test/program.test.ts",
  "packages/cli/test/run.test.ts",
  "packages/cli/test/serve",
  "packages/archive/test/archive.test.ts",
  "packages/archive/test/follow.test.ts",
  "test/lease-source.test.ts",
  "test/storing/storing-sqlite.test.ts",
];

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
  const isQuickGood = vitest([...memory, VITEST, "run", ...(files.length > 0 ? files : DIFFERING)], {
    MALLOC_ARENA_MAX: "2",
  });
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
