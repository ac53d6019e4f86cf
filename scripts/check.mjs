/**
 * `npm run check`: everything that is wrong without running the code. All steps run, also after one that failed, so that one
 * run shows everything to fix. The bootstrap has built the sources already.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const BIN = join(ROOT, "node_modules", ".bin");
const PUBLISHED = ["protocol", "client", "schemes", "coordinator", "cli", "archive"];
/** For ES modules and CommonJS. */
const DUAL = ["protocol", "client"];

const STEPS = [
  ["types of the tests", "tsc", ["-p", "tsconfig.tests.json"]],
  ["linter", "oxlint", ["--deny-warnings"]],
  ["formatter", "biome", ["ci", "--linter-enabled=false", "--colors=off"]],
  ["dead code", "knip", []],
  ["names and lengths", process.execPath, ["scripts/style.mjs"]],
  ["plain words", process.execPath, ["scripts/prose.mjs"]],
  ["picture of the README", process.execPath, ["scripts/diagram.mjs", "--check"]],
  ["weight of codec, client and console", process.execPath, ["scripts/size.mjs"]],
  ["types of the Python client", process.execPath, ["scripts/python-types.mjs"]],
  // Through npm: publint would ask for a pnpm on PATH, which a fresh machine has not.
  ...PUBLISHED.map((name) => [`package ${name}`, "publint", ["--strict", "--pack", "npm", `packages/${name}`]]),
  ...DUAL.map((name) => [`types of ${name} in every module`, "attw", ["--pack", `packages/${name}`]]),
];

/** The steps whose figures are worth a look although they passed. */
const SHOWN = new Set(["weight of codec, client and console", "types of the Python client"]);

const failed = [];
for (const [name, command, parameters] of STEPS) {
  const program = command === process.execPath ? command : join(BIN, command);
  const { status, stdout, stderr, error } = spawnSync(program, parameters, {
    cwd: ROOT,
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: "0" },
  });
  const passed = status === 0;
  console.log(`${passed ? "ok    " : "FAILED"}  ${name}`);
  if (!passed) failed.push(name);
  else if (!SHOWN.has(name)) continue;
  console.log(`${stdout ?? ""}${stderr ?? ""}${error ? error.message : ""}`.trimEnd().replace(/^/gm, "        "));
}
if (failed.length > 0) {
  console.log(`\n${failed.length} of ${STEPS.length} checks failed: ${failed.join(", ")}. Try npm run format first.`);
  process.exit(1);
}
console.log(`\nall ${STEPS.length} checks passed`);
