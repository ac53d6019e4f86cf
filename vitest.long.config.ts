/** What takes long or only measures, each by a command of its own (package.json): not part of `npm test`. */
import { defineConfig } from "vitest/config";
import { seedOfRun } from "./test/seed-of-run.js";

const seed = seedOfRun(process.env);
const DAY_MS = 24 * 3_600_000;

export default defineConfig({
  test: {
    include: ["bench/**/*.bench.ts", "test/**/*.long.ts"],
    server: { deps: { external: [/\/packages\/[a-z]+\/dist\//] } },
    pool: "forks",
    maxWorkers: 1,
    globalSetup: ["test/seed-of-run.ts", "test/folders-of-run.ts", "test/redis/global-setup.ts"],
    setupFiles: ["test/end-with-run.ts", "test/stuck/watch-worker.ts", "test/seed.ts", "test/environment.ts"],
    testTimeout: DAY_MS,
    hookTimeout: 120_000,
    disableConsoleIntercept: true,
    // Without its own window on a terminal: the runs show their signs of life there (test/signs-of-life.ts).
    reporters: [["default", { summary: false }]],
    sequence: { seed },
    provide: { seed },
  },
});
