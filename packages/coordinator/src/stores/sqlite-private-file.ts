/** Makes files that only their owner may read, before SQLite would make them for everybody. */
import { closeSync, existsSync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes an empty file where there is none; one that is there is never opened, because closing it would drop SQLite's locks on it.
 * Such an empty file is a new database to SQLite, and what it makes beside it gets the same mode.
 */
export function makePrivateFile(path: string): void {
  if (existsSync(path)) return;
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** SQLite syncs a file, not its name: without this a power loss could leave a file that no folder holds. */
export function syncFolderOf(path: string): void {
  const folder = openSync(dirname(path), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
