/**
 * Runs once before all tests: names the programs that they miss, prints the seed, and gives the run a state directory, so that nothing writes
 * into the user's home.
 */
import { spawnSync } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { env } from "node:process";
import type { TestProject } from "vitest/node";
import { removeWithMarkers } from "./markers-of-stores.js";

/** What tests start without asking whether it is there; a test that needs anything else is skipped where that is missing. */
const PROGRAMS = ["bash", "mkfifo", "script", "stty"];

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  requirePrograms(env["PATH"]);
  const { seed } = project.config.sequence;
  console.log(`Seed ${seed}: repeat this run with CALLNUMBER_TEST_SEED=${seed}`);
  const directory = await mkdtemp(join(tmpdir(), "callnumber-state-"));
  // Workers inherit it. The default store and the checkpoint directory are in there.
  env["XDG_STATE_HOME"] = directory;
  return () => removeWithMarkers(directory);
}

/** @throws Error that names those that are not on `path`: a test would wait minutes for what they never write. */
export function requirePrograms(path: string | undefined): void {
  const isMissing = (name: string) =>
    spawnSync("/bin/sh", ["-c", `command -v ${name}`], { env: { ...env, PATH: path } }).status !== 0;
  const missing = PROGRAMS.filter(isMissing);
  if (missing.length > 0)
    throw new Error(`The tests need programs that are not on PATH: ${missing.join(", ")}. Install them.`);
}
