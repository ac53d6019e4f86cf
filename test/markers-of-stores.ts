/** Embedded stores leave a restart marker each in memory-backed storage, which does not go away with the directory of a test. */
import { readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { removeRestartMarker } from "../packages/coordinator/src/stores/sqlite/restart-marker.js";

/** The lock of a store still names the place of a store file that was moved or deleted. */
const LOCK_SUFFIX = ".lock";

/** Removes a directory of a test, and the markers of all stores in it. */
export async function removeWithMarkers(folder: string): Promise<void> {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && path.endsWith(LOCK_SUFFIX)) removeRestartMarker(path.slice(0, -LOCK_SUFFIX.length));
  }
  await rm(folder, { recursive: true, force: true });
}
