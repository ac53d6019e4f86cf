/**
 * The checkpoint directory: how its files are listed and replaced, and the error where it can't be used. What the files hold is in
 * checkpoint-file.ts and uncounted-node.ts.
 * Guarantees: G8 (docs/guarantees.md).
 */
import { randomUUID } from "node:crypto";
import { closeSync, fsyncSync, openSync, readdirSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { CoordinatorError } from "../errors.js";

const FREE_SPACE = "Free space there; a coordinator that runs then leases again";
const GIVE_RIGHT = "Let this user read and write it";

/** Another directory has nothing of what was leased: where only space, a right or a mount is missing, it would be the wrong way out. */
const REMEDIES: ReadonlyMap<string | undefined, string> = new Map([
  ["ENOSPC", FREE_SPACE],
  ["EDQUOT", FREE_SPACE],
  ["EACCES", GIVE_RIGHT],
  ["EPERM", GIVE_RIGHT],
  ["EROFS", "Mount it for reading and writing"],
]);

export function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** The old file stays whole until the new one is on the disk; after a failure either may be there, and nothing else. */
export function replaceFile(folder: string, path: string, text: string): void {
  const newPath = `${path}.${randomUUID()}.new`;
  try {
    writeFileSync(newPath, text, { mode: 0o600, flush: true });
    renameSync(newPath, path);
  } catch (error) {
    removeIfThere(newPath);
    throw error;
  }
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** On a full disk each start of a coordinator that fails would leave a file. */
function removeIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It was never made, or the disk fails at this, too.
  }
}

/** @throws CoordinatorError `checkpoint_unavailable` for an error of the system. */
export function orUnusable<T>(folder: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (error instanceof CoordinatorError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    const remedy = REMEDIES.get(code) ?? "Pass one that can be written (--checkpoint-dir)";
    throw new CoordinatorError(
      "checkpoint_unavailable",
      `the checkpoint directory ${folder} can't be used: ${message}. ${remedy}`,
      { cause: error },
    );
  }
}
