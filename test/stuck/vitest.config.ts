/** For stuck.test.ts: test files that never end. */
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    root: fileURLToPath(new URL("./", import.meta.url)),
    include: ["*.fixture.ts"],
    pool: "forks",
    setupFiles: ["watch-worker.ts"],
    provide: { stuckAfterSeconds: 2 },
  },
});
