/** `npm run test:all`: all tests, the slow ones too and samples in full, two long runs in short, and the output that documents show. */
import { spawnSync } from "node:child_process";
import process from "node:process";

const LONG_RUNS = ["test/faults/soak.long.ts", "test/remedies/remedies.long.ts"];

/** All are run, also after one that failed. */
const results = [
  succeeds("npx", ["vitest", "run", ...process.argv.slice(2)], { CALLNUMBER_TEST_ALL: "1" }),
  succeeds("npx", ["vitest", "run", "--config", "vitest.long.config.ts", "--maxWorkers=2", ...LONG_RUNS], {
    CALLNUMBER_MILLIONS: "2",
  }),
  succeeds("node", ["scripts/shown-output.mjs"]),
];
process.exit(results.includes(false) ? 1 : 0);

function succeeds(program, words, env = {}) {
  return spawnSync(program, words, { stdio: "inherit", env: { ...process.env, ...env } }).status === 0;
}
