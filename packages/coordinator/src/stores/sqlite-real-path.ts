/** The one path by which a store is locked and marked. */
import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/** Without links: the lock and SQLite's own files lie beside the file itself, whatever name it was opened by. */
export function realPathOf(givenPath: string): string {
  const path = resolve(givenPath);
  if (existsSync(path)) return realpathSync(path);
  return existsSync(dirname(path)) ? join(realpathSync(dirname(path)), basename(path)) : path;
}
