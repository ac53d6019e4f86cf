/**
 * Starts one of the long runs with its options: `node scripts/long-run.mjs FILE --option value …`. Each option reaches the run in the
 * environment. `--seed` takes the seed that a run printed, `--replay` a file that it wrote.
 */
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";

const VARIABLES = {
  seed: "CALLNUMBER_TEST_SEED",
  minutes: "CALLNUMBER_MINUTES",
  millions: "CALLNUMBER_MILLIONS",
  histories: "CALLNUMBER_HISTORIES",
  replay: "CALLNUMBER_REPLAY",
  target: "CALLNUMBER_TARGET",
};
/** All others take whole numbers. */
const TEXTS = new Set(["replay", "target"]);

const [file, ...given] = process.argv.slice(2);
const { values } = parseArgs({
  args: given,
  options: Object.fromEntries(Object.keys(VARIABLES).map((name) => [name, { type: "string" }])),
});
const env = { ...process.env };
for (const [name, value] of Object.entries(values)) {
  if (!TEXTS.has(name) && !/^\d+$/.test(value)) {
    console.error(`--${name} takes a whole number, not "${value}"`);
    process.exit(2);
  }
  env[VARIABLES[name]] = name === "replay" ? resolve(value) : value;
}
const { status } = spawnSync("npx", ["vitest", "run", "--config", "vitest.long.config.ts", file], {
  stdio: "inherit",
  env,
});
process.exit(status ?? 1);
