/**
 * The lock of the embedded store: a file of its own beside it. A process that opens and closes its own database file, to copy or
 * to hash it, silently drops SQLite's locks on it; nothing else opens this one. The lock ends with the process, however it ends.
 */
import { statSync } from "node:fs";
import { DatabaseSync } from "@photostructure/sqlite";
import { CoordinatorError } from "../errors.js";
import { makePrivateFile } from "./sqlite-private-file.js";

const SQLITE_BUSY = 5;

export interface SqliteLock {
  /** Whether it is still the one that others would meet: a "stale" lock file may have been removed. */
  isHeld(): boolean;
  close(): void;
}

/** @throws CoordinatorError `store_locked`. */
export function lockBeside(path: string): SqliteLock {
  const lockPath = `${path}.lock`;
  makePrivateFile(lockPath);
  const lock = new DatabaseSync(lockPath, { timeout: 0 });
  try {
    lock.exec("PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE;");
    const { ino } = statSync(lockPath);
    return {
      isHeld: () => statSync(lockPath, { throwIfNoEntry: false })?.ino === ino,
      close: () => lock.close(),
    };
  } catch (error) {
    lock.close();
    if ((error as { errcode?: unknown }).errcode !== SQLITE_BUSY) throw error;
    throw new CoordinatorError(
      "store_locked",
      `another process has the store ${path} open; only one may. If that is a coordinator ("callnumber serve"), ` +
        "ask it over HTTP, or stop it first and start it again afterwards",
      { cause: error },
    );
  }
}

/** For a process whose lock is not held any more. */
export function lockLost(path: string): CoordinatorError {
  return new CoordinatorError(
    "store_locked",
    `the lock file of the store ${path} was removed or replaced, so another coordinator may have the store open; ` +
      "this one leases no more. See that there is one only, then start it again",
  );
}
