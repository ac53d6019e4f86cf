/** For mutants.long.ts: the tests that must notice a broken script or statement. The first that fails ends the run. */
import { defineConfig, mergeConfig } from "vitest/config";
import all from "../../vitest.config.js";
import { mutantOfRun } from "./mutants.js";

const mutant = mutantOfRun();
const inTypeScript = { name: "mutant", load: (id: string) => (id === mutant?.file ? mutant.text : null) };
const merged = mergeConfig(
  all,
  defineConfig({
    plugins: [inTypeScript],
    test: { bail: 1, maxWorkers: 1, setupFiles: ["test/mutation/with-mutant.ts"] },
  }),
);
export default { ...merged, test: { ...merged.test, include: ["packages/coordinator/test/**/*.test.ts"] } };
