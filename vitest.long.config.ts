/** What takes long or only measures, each by a command of its own (package.json): not part of `npm test`. */
import { defineConfig } from "vitest/config";
import { seedOfRun } from "./test/size-of-run.js";

const seed = seedOfRun(process.env);
const DAY_MS = 24 * 3_600_000;

export default defineConfig({
  test: {
    include: ["bench/**/*.bench.ts", "test/**/*.long.ts"],
    server: { deps: { external: [/\/packages\/[a-z]+\/dist\//] } },
    pool: "forks",
    maxWorkers: 1,
    globalSetup: ["test/global-setup.ts", "test/redis/global-setup.ts", "test/postgres/global-setup.ts"],
    setupFiles: ["test/setup.ts"],
    testTimeout: DAY_MS,
    hookTimeout: 120_000,
    disableConsoleIntercept: true,
    sequence: { seed },
    provide: { seed },
  },
});
