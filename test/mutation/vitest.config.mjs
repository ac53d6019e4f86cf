/** For stryker.config.mjs: the tests of one target, each file in a thread of its own, with the same seed each time. */
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
    globalSetup: ["test/folders-of-run.ts"],
    setupFiles: ["test/seed.ts", "test/environment.ts"],
    testTimeout: 900_000,
    hookTimeout: 900_000,
    expect: { poll: { timeout: 300_000, interval: 10 } },
    sequence: { seed: SEED },
    provide: { seed: SEED },
  },
});
