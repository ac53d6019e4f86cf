/** Runs once before all tests: prints the seed, and gives the run a state directory, so that nothing writes into the user's home. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { env } from "node:process";
import type { TestProject } from "vitest/node";
import { removeWithMarkers } from "./markers-of-stores.js";

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const { seed } = project.config.sequence;
  console.log(`Seed ${seed}: repeat this run with CALLNUMBER_TEST_SEED=${seed}`);
  const directory = await mkdtemp(join(tmpdir(), "callnumber-state-"));
  // Workers inherit it. The default store and the checkpoint directory are in there.
  env["XDG_STATE_HOME"] = directory;
  return () => removeWithMarkers(directory);
}
