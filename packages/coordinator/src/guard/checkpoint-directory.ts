/**
 * The checkpoint directory: how its files are listed and replaced, and the error where it can't be used. What the files hold is in
 * checkpoint-file.ts and uncounted-node.ts.
 * Guarantees: G8 (docs/guarantees.md).
 */
import { randomUUID } from "node:crypto";
import { closeSync, fsyncSync, openSync, readdirSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { CoordinatorError } from "../errors.js";

/** A disk, or this user's share of it, is full. */
const FULL_CODES: ReadonlySet<string | undefined> = new Set(["ENOSPC", "EDQUOT"]);

/** The user has not the right, or the disk is read-only. */
const FORBIDDEN_CODES: ReadonlySet<string | undefined> = new Set(["EACCES", "EPERM", "EROFS"]);

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
    throw new CoordinatorError(
      "checkpoint_unavailable",
      `the checkpoint directory ${folder} can't be used: ${(error as Error).message}. ${remedyFor(error)}`,
      { cause: error },
    );
  }
}

/** Another directory has nothing of what was leased: where only space or a right is missing, it would be the wrong way out. */
function remedyFor(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (FULL_CODES.has(code)) return "Free space there; a coordinator that runs then leases again";
  return FORBIDDEN_CODES.has(code)
    ? "Let this user read and write it"
    : "Pass one that can be written (--checkpoint-dir)";
}
