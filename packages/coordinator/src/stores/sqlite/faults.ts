/** What SQLite reports, as the errors of this package. */
import { CoordinatorError } from "../../errors.js";

const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOT_A_DATABASE = 26;

export function isOfSqlite(error: unknown): boolean {
  return error instanceof Error && (error as { code?: unknown }).code === "ERR_SQLITE_ERROR";
}

/** Another connection has a lock that stands in the way. */
export function isBusy(error: unknown): boolean {
  return primaryCodeOf(error) === SQLITE_BUSY;
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
  const isDenied = (error as { code?: unknown } | null)?.code === "EACCES";
  const remedy = isDenied ? ". Run this as the user that the store belongs to" : "";
  return new CoordinatorError("store_unavailable", `the store ${path} can't be opened: ${reasonOf(error)}${remedy}`, {
    cause: error,
  });
}

/** For a store that could not be written: it leases no more in this process. */
export function failed(error: unknown, path: string): CoordinatorError {
  if (primaryCodeOf(error) === SQLITE_CORRUPT) return damaged(path, error);
  return new CoordinatorError(
    "store_unavailable",
    `the store ${path} could not be written (${reasonOf(error)}); this coordinator leases no more. Mend the disk, then start it again`,
    { cause: error },
  );
}

function damaged(path: string, cause: unknown): CoordinatorError {
  return new CoordinatorError(
    "store_corrupt",
    `the file of the store ${path} is damaged (${reasonOf(cause)}): parts of it were overwritten, or a file of another time was put ` +
      "beside them. Restore a backup, then recover it",
    { cause },
  );
}

/** The low byte; the others say more of the same. */
function primaryCodeOf(error: unknown): number | undefined {
  const { errcode } = (error ?? {}) as { errcode?: unknown };
  return typeof errcode === "number" ? errcode & 0xff : undefined;
}
