/** The errors of the embedded store's file, and what SQLite reports as the errors of this package. */
import { type ErrorCode, shellWord } from "@callnumber/protocol/api";
import { CoordinatorError } from "../../errors.js";

const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_NOT_A_DATABASE = 26;

export function isOfSqlite(error: unknown): boolean {
  return error instanceof Error && (error as { code?: unknown }).code === "ERR_SQLITE_ERROR";
}

/** Another connection holds a lock. */
export function isBusy(error: unknown): boolean {
  return primaryCodeOf(error) === SQLITE_BUSY;
}

/** The disk of the file that was written is full. */
export function isFull(error: unknown): boolean {
  return primaryCodeOf(error) === SQLITE_FULL;
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** For a store that can't be opened, backed up or read. */
export function unusable(error: unknown, path: string): CoordinatorError {
  if (error instanceof CoordinatorError) return error;
  if (primaryCodeOf(error) === SQLITE_NOT_A_DATABASE) {
    const message = `${path} is not a Callnumber store, nor any SQLite database`;
    return new CoordinatorError("store_corrupt", message, { cause: error });
  }
  if (primaryCodeOf(error) === SQLITE_CORRUPT) return damaged(path, error);
  const message = `the store ${path} can't be opened: ${reasonOf(error)}${remedyFor(error)}`;
  return new CoordinatorError("store_unavailable", message, { cause: error });
}

function remedyFor(error: unknown): string {
  if (isFull(error)) return ". Free space on its disk, then start this again";
  const isDenied = (error as { code?: unknown } | null)?.code === "EACCES";
  return isDenied ? ". Run this as the user that the store belongs to" : "";
}

/** For a store that could not be written: this process stops leasing from it. */
export function failed(error: unknown, path: string): CoordinatorError {
  if (primaryCodeOf(error) === SQLITE_CORRUPT) return damaged(path, error);
  const remedy = isFull(error) ? "Free space on its disk" : "Fix the disk";
  return new CoordinatorError(
    "store_unavailable",
    `the store ${path} could not be written (${reasonOf(error)}); this coordinator leases no more. ${remedy}, then start it again`,
    { cause: error },
  );
}

function damaged(path: string, cause: unknown): CoordinatorError {
  return new CoordinatorError(
    "store_corrupt",
    `the file of the store ${path} is damaged (${reasonOf(cause)}): parts of it were overwritten, or a file of another time was put ` +
      "next to them. Restore a backup, then recover it",
    { cause },
  );
}

export function missing(path: string): CoordinatorError {
  return new CoordinatorError(
    "store_not_found",
    `there is no store at ${path}. If an archive has call numbers, find its store: a volume to mount, another directory or ` +
      `user. To begin a new one: \`callnumber serve --create --store ${shellWord(`sqlite:${path}`)}\``,
  );
}

/** Over a network, a lock may not hold, and a write that was acknowledged may not be on any disk. */
export function notLocal(path: string, networkFileSystem: string): CoordinatorError {
  return new CoordinatorError(
    "store_unavailable",
    `the store ${path} would lie on a network file system (${networkFileSystem}), where locks may not hold. Put it on a local disk, ` +
      "or pass --allow-network-file-system if one machine alone uses it",
  );
}

/** For a store that another process has open. */
export function locked(path: string, cause: unknown): CoordinatorError {
  return new CoordinatorError(
    "store_locked",
    `the store ${path} can't be opened: another process has it open, perhaps by another name: a coordinator ("callnumber serve") ` +
      "or a backup. Stop it first, or ask the coordinator over HTTP",
    { cause },
  );
}

/** For a process that lost its lock. */
export function lockLost(path: string): CoordinatorError {
  return new CoordinatorError(
    "store_locked",
    `the lock file of the store ${path} was removed or replaced, so another coordinator may have the store open; ` +
      "this one leases no more. See that there is one only, then start it again",
  );
}

/** For a file that lost its name while it was open. */
export function notInPlace(code: ErrorCode, path: string, remedy: string): CoordinatorError {
  const message = `the file ${path} was removed or replaced while the store was open; this coordinator leases no more. ${remedy}`;
  return new CoordinatorError(code, message);
}

/** The low byte of an extended result code. */
function primaryCodeOf(error: unknown): number | undefined {
  const { errcode } = (error ?? {}) as { errcode?: unknown };
  return typeof errcode === "number" ? errcode & 0xff : undefined;
}
