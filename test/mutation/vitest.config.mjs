/** For stryker.config.mjs: the tests of one target, all in one thread, with the same seed each time. A new thread for each mutant. */
import { env } from "node:process";
import { configDefaults, defineConfig } from "vitest/config";
import { TARGETS } from "./targets.mjs";

const SEED = 1;

export default defineConfig({
  test: {
    include: TARGETS[env.CALLNUMBER_MUTATE]?.tests,
    exclude: [...configDefaults.exclude, "**/*.slow.test.ts"],
    server: { deps: { external: [/\/packages\/[a-z]+\/dist\//] } },
    env: { CALLNUMBER_TEST_MUTATION: "1" },
    pool: "threads",
    isolate: false,
    globalSetup: ["test/global-setup.ts"],
    setupFiles: ["test/setup.ts"],
    // In a mutation run the mutant is the reason for what does not come; below the limit of Stryker, after which a new process is made.
    testTimeout: 5_000,
    hookTimeout: 5_000,
    expect: { poll: { timeout: 4_000, interval: 10 } },
    sequence: { seed: SEED },
    provide: { seed: SEED },
  },
});
