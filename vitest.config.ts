/**
 * The tests of the workspace: those of each package, of the examples, and of the whole path. `npm test` leaves out the slow ones
 * (`*.slow.test.ts`), `npm run test:all` runs them too, and plays in full what else is sampled.
 * Tests import their own package's sources and the other packages as built, as a user would.
 */
import { configDefaults, defineConfig, type TestUserConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { IS_WHOLE, seedOfRun } from "./test/size-of-run.js";

const seed = seedOfRun(process.env);

/** These take longest: begun last, one of them would run alone while the other workers have nothing left to do. */
const LONGEST = /\/test\/(faults|simulation|conformance|reflexes|deploy\/runtimes|stores\.test)/;

const FILES = ["packages/*/test/**/*.test.ts", "examples/*/test/**/*.test.ts", "test/**/*.test.ts"];
const SLOW = "**/*.slow.test.ts";

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => (LONGEST.test(moduleId) ? 0 : 1);
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other));
  }
}

const EACH = {
  // What is built is loaded as it is, by Node.
  server: { deps: { external: [/\/packages\/[a-z]+\/dist\//] } },
  pool: "forks" as const,
  execArgv: IS_WHOLE ? [] : ["--max-old-space-size=256", "--max-semi-space-size=4"],
  // More than the two cores that it is made for: many tests wait. In `npm test` a fourth would take memory, and save nothing.
  maxWorkers: IS_WHOLE ? 4 : 3,
  setupFiles: ["test/setup.ts"],
  // A time limit only ends a hang and proves nothing: a machine with sixteen times the work passes, too.
  testTimeout: 1_800_000,
  hookTimeout: 1_800_000,
  teardownTimeout: 30_000,
  // Whatever has tests side by side has real servers and processes, too.
  maxConcurrency: 2,
  expect: { poll: { timeout: 300_000, interval: 10 } },
  sequence: { seed, sequencer: LongestFirst },
  provide: { seed },
} satisfies TestUserConfig;

/** Short files share processes, as loading the modules would take longer than the tests. */
const QUICK = { ...EACH, include: FILES, exclude: [...configDefaults.exclude, SLOW], isolate: false };
/** A slow one may mock a module or fill a process. */
const APART = { ...EACH, include: [SLOW], exclude: configDefaults.exclude, isolate: true };

export default defineConfig({
  test: {
    ...QUICK,
    globalSetup: ["test/global-setup.ts", "test/redis/global-setup.ts", "test/postgres/global-setup.ts"],
    ...(IS_WHOLE ? { projects: [{ test: { ...QUICK, name: "quick" } }, { test: { ...APART, name: "slow" } }] } : {}),
  },
});
