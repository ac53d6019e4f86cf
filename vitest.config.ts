/**
 * All tests of the workspace in one run: those of each package, of the examples, and of the whole path.
 * Tests import their own package's sources and the other packages as built, as a user would.
 */
import { defineConfig } from "vitest/config";

/** Set it to run a failed order and failed properties again. */
const SEED_VARIABLE = "CALLNUMBER_TEST_SEED";
const SEED_LIMIT = 2 ** 31;

const seed = seedOfThisRun();

export default defineConfig({
  test: {
    include: ["packages/*/test/**/*.test.ts", "examples/*/test/**/*.test.ts", "test/**/*.test.ts"],
    // Tests start and kill real servers: each file gets a process of its own.
    pool: "forks",
    maxWorkers: 2,
    globalSetup: ["test/redis/global-setup.ts"],
    setupFiles: ["test/end-with-run.ts", "test/seed.ts"],
    // A time limit is a safety net and proves nothing: wide enough for a slow, shared machine.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 30_000,
    sequence: { seed },
    provide: { seed },
  },
});

function seedOfThisRun(): number {
  const given = process.env[SEED_VARIABLE];
  const chosen = given === undefined ? Math.floor(Math.random() * SEED_LIMIT) : Number(given);
  if (!Number.isInteger(chosen) || chosen < 0 || chosen >= SEED_LIMIT) {
    throw new RangeError(`${SEED_VARIABLE} is ${given}: give a whole number from 0 to ${SEED_LIMIT - 1}`);
  }
  console.log(`Seed ${chosen}: the same again with ${SEED_VARIABLE}=${chosen}`);
  return chosen;
}
