/**
 * What embedded stores leave in the machine's memory: a restart marker each, which does not go away with the folder of a test
 * (packages/coordinator/src/stores/sqlite/restart-marker.ts).
 */
import { readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { thisMachine } from "../packages/coordinator/src/stores/sqlite/machine.js";
import { removeRestartMarker } from "../packages/coordinator/src/stores/sqlite/restart-marker.js";

/** Of a store whose file was moved away or deleted, its lock still tells where it was. */
const LOCK_SUFFIX = ".lock";

/** Removes a folder of a test, and the markers of all stores in it. */
export async function removeWithMarkers(folder: string): Promise<void> {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && path.endsWith(LOCK_SUFFIX)) removeRestartMarker(path.slice(0, -LOCK_SUFFIX.length));
  }
  await rm(folder, { recursive: true, force: true });
}

/** All markers of stores that lie on this machine, of other runs and of real stores too. */
export function markersOnMachine(): readonly string[] {
  return thisMachine().markerFolders.flatMap((folder) => markersIn(folder));
}

function markersIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter((name) => /^callnumber-.*\.restart$/.test(name))
      .map((name) => join(folder, name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
