/** For lua.long.ts: the tests that must notice a broken script. The first that fails ends the run. */
import { defineConfig, mergeConfig } from "vitest/config";
import all from "../../vitest.config.js";

const merged = mergeConfig(
  all,
  defineConfig({ test: { bail: 1, maxWorkers: 1, setupFiles: ["test/mutation/with-lua-mutant.ts"] } }),
);
export default { ...merged, test: { ...merged.test, include: ["packages/coordinator/test/**/*.test.ts"] } };
