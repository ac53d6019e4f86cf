/** The benchmarks: run one by one, printing what they measure, on the Redis that the tests use. They assert nothing. */
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { seedOfRun } from "../test/seed-of-run.js";

const seed = seedOfRun(process.env);

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  test: {
    include: ["bench/**/*.bench.ts"],
    pool: "forks",
    maxWorkers: 1,
    globalSetup: ["test/seed-of-run.ts", "test/folders-of-run.ts", "test/redis/global-setup.ts"],
    setupFiles: ["test/end-with-run.ts", "test/seed.ts", "test/environment.ts"],
    testTimeout: 600_000,
    hookTimeout: 120_000,
    reporters: ["default"],
    disableConsoleIntercept: true,
    sequence: { seed },
    provide: { seed },
  },
});
