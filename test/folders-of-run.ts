/** Folders that the whole run shares, so that nothing a test starts writes into the home of whoever runs the tests. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    /** Stands for the user's state folder (`XDG_STATE_HOME`): the witness folder lies there. */
    stateFolder: string;
  }
}

export default async function makeFolders(project: TestProject): Promise<() => Promise<void>> {
  const stateFolder = await mkdtemp(join(tmpdir(), "callnumber-state-"));
  project.provide("stateFolder", stateFolder);
  return () => rm(stateFolder, { recursive: true, force: true });
}
