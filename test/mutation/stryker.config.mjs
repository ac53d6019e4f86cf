/** StrykerJS for one target of targets.mjs, which the environment names. Part of `npm run test:mutation`. */
import { env } from "node:process";
import { TARGETS } from "./targets.mjs";

const name = env.CALLNUMBER_MUTATE;
const target = TARGETS[name];

export default {
  testRunner: "vitest",
  // By name: pnpm gives Stryker no folder of neighbors to search.
  plugins: ["@stryker-mutator/vitest-runner"],
  vitest: { configFile: "test/mutation/vitest.config.mjs", related: false },
  mutate: target?.mutate,
  // Most texts are messages. Routes, fields and codes are compared by the tests of the documents and across packages.
  mutator: { excludedMutations: ["StringLiteral"] },
  coverageAnalysis: "perTest",
  concurrency: 2,
  timeoutMS: 6_000,
  // TypeScript 7 has no API by which Stryker could read or rewrite them.
  tsconfigFile: "none",
  // Not within node_modules, which vitest does not transform.
  tempDirName: "stryker.tmp",
  ignorePatterns: ["docs", "deploy"],
  reporters: ["progress-append-only", "clear-text", "json"],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  jsonReporter: { fileName: `stryker.tmp/${name}.json` },
  thresholds: { high: 95, low: 90, break: 90 },
};
