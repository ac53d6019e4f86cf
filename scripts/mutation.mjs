/**
 * `npm run test:mutation`: breaks the Redis scripts, the statements for PostgreSQL, then the TypeScript, one small thing at a time; the tests must
 * notice. `--target NAME` (lua, sql, or one of test/mutation/targets.mjs) does a part of it.
 */
import { spawnSync } from "node:child_process";
import process from "node:process";
import { parseArgs } from "node:util";
import { TARGETS } from "../test/mutation/targets.mjs";

/** What Stryker does not break. */
const SENT = ["lua", "sql"];
const NAMES = [...SENT, ...Object.keys(TARGETS)];
const { target } = parseArgs({ options: { target: { type: "string" } } }).values;
if (target !== undefined && !NAMES.includes(target)) {
  console.error(`--target is one of ${NAMES.join(", ")}, not "${target}"`);
  process.exit(2);
}

/** All are run, also after one that failed. */
const failed = (target === undefined ? NAMES : [target]).filter((name) => {
  const [program, ...words] = SENT.includes(name)
    ? [process.execPath, "scripts/long-run.mjs", "test/mutation/mutants.long.ts"]
    : ["npx", "stryker", "run", "test/mutation/stryker.config.mjs"];
  const env = { ...process.env, CALLNUMBER_MUTATE: name };
  return spawnSync(program, words, { stdio: "inherit", env }).status !== 0;
});
if (failed.length > 0) console.error(`Too many mutants survive, or could not be tried: ${failed.join(", ")}`);
process.exit(failed.length > 0 ? 1 : 0);
