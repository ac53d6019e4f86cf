/**
 * Starts one of the long runs with its options: `node scripts/long-run.mjs FILE --option value …`. Each option reaches the run as
 * CALLNUMBER_OPTION in the environment; `--seed` is the seed that the run printed.
 */
import { spawnSync } from "node:child_process";
import process from "node:process";
import { parseArgs } from "node:util";

const [file, ...given] = process.argv.slice(2);
const { values } = parseArgs({
  args: given,
  options: { minutes: { type: "string" }, seed: { type: "string" }, millions: { type: "string" } },
});
for (const [name, value] of Object.entries(values)) {
  if (!/^\d+$/.test(value)) {
    console.error(`--${name} takes a whole number, not "${value}"`);
    process.exit(2);
  }
}
const { seed, minutes, millions } = values;
const env = {
  ...process.env,
  ...(seed === undefined ? {} : { CALLNUMBER_TEST_SEED: seed }),
  ...(minutes === undefined ? {} : { CALLNUMBER_MINUTES: minutes }),
  ...(millions === undefined ? {} : { CALLNUMBER_MILLIONS: millions }),
};
const { status } = spawnSync("npx", ["vitest", "run", "--config", "vitest.long.config.ts", file], {
  stdio: "inherit",
  env,
});
process.exit(status ?? 1);
