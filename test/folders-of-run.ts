/** Folders that the whole run shares, so that nothing a test starts writes into the home of whoever runs the tests. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { markersOnMachine, removeWithMarkers } from "./markers-of-stores.js";

declare module "vitest" {
  interface ProvidedContext {
    /** Stands for the user's state folder (`XDG_STATE_HOME`): the witness folder lies there. */
    stateFolder: string;
  }
}

export default async function makeFolders(project: TestProject): Promise<() => Promise<void>> {
  const stateFolder = await mkdtemp(join(tmpdir(), "callnumber-state-"));
  project.provide("stateFolder", stateFolder);
  const markersBefore = new Set(markersOnMachine());
  return async () => {
    await removeWithMarkers(stateFolder);
    const left = markersOnMachine().filter((path) => !markersBefore.has(path));
    // Not a failure: markers do not tell whose they are, and another run may be under way on this machine.
    if (left.length > 0) {
      console.warn(
        `${left.length} restart markers have appeared in the machine's memory: left by a test, or by another run\n${left.join("\n")}`,
      );
    }
  };
}
