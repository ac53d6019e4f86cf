/**
 * The one path by which a store is locked and marked: the lock and SQLite's own files lie beside the file itself, by whatever name it was opened.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { readFileSync } from "node:fs";
import { CoordinatorError } from "../errors.js";
import { LinkLeadsNowhere, realPathOf } from "../platform/real-path.js";

/** The store's file, SQLite's files and the lock. */
const SUFFIXES = ["", "-wal", "-shm", "-journal", ".lock"];

/** @throws CoordinatorError for a link that leads nowhere: `store_missing`, or `store_unavailable` where a store could have been made. */
export function storePathOf(givenPath: string, { create }: { readonly create: boolean }): string {
  try {
    return realPathOf(givenPath);
  } catch (error) {
    if (!(error instanceof LinkLeadsNowhere)) throw error;
    const message = create
      ? `no store is made at ${givenPath}: ${error.message}`
      : `there is no store at ${givenPath}: ${error.message}`;
    throw new CoordinatorError(create ? "store_unavailable" : "store_missing", message, { cause: error });
  }
}

/**
 * A file that is mounted alone has another name, in another directory, with another lock and log. Checked where the system tells (Linux).
 * @throws CoordinatorError `store_unavailable`.
 */
export function mustNotBeMounted(storePath: string): void {
  const mountPoints = mountPointsIn(mountInfo());
  const mounted = SUFFIXES.map((suffix) => storePath + suffix).find((path) => mountPoints.has(path));
  if (mounted === undefined) return;
  throw new CoordinatorError(
    "store_unavailable",
    `the store ${storePath} is not used: ${mounted} is mounted as a single file, so it has a second name with another lock. ` +
      "Mount the directory that holds the store",
  );
}

/** Of the text of proc_pid_mountinfo(5): the fifth field, where blanks and backslashes are written as octal numbers. */
export function mountPointsIn(text: string): ReadonlySet<string> {
  const fields = text.split("\n").map((line) => line.split(" ")[4] ?? "");
  const decoded = (_: string, octal: string) => String.fromCharCode(Number.parseInt(octal, 8));
  return new Set(fields.map((field) => field.replaceAll(/\\([0-7]{3})/g, decoded)));
}

function mountInfo(): string {
  try {
    return readFileSync("/proc/self/mountinfo", "utf8");
  } catch {
    return "";
  }
}
