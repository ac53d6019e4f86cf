/**
 * The two locks of the embedded store. Both end with the process, however it ends.
 *
 * On the file itself: SQLite's own lock, which goes by inode, so that it holds for every name of the file. But a process that opens
 * and closes its own database file without SQLite, to copy or to hash it, drops it silently.
 * On a file beside it, which nothing else opens: it holds all the same, and also before there is a database.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { statSync } from "node:fs";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { CoordinatorError } from "../../errors.js";
import { makePrivateFile } from "./private-file.js";

export interface SqliteLock {
  /** Whether it is still the one that others would meet: a "stale" lock file may have been removed. */
  isHeld(): boolean;
  close(): void;
}

/** @throws SQLITE_BUSY when another process holds it. */
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
    throw error;
  }
}

/**
 * Locks the file itself against every other connection. First of all: before it nothing reads the log, because one that was left
 * beside another name of a file in use would be written into it.
 * @throws SQLITE_BUSY when another process has the file open, by whatever name.
 */
export function lockItself(database: DatabaseSyncInstance): void {
  database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT;");
}

/**
 * Turns the lock of `lockItself` into one that lets others read, for backups, and still keeps a second `lockItself` out. SQLite can't
 * do so in one step: in between, another process may open the file, which the second BEGIN EXCLUSIVE finds out. SELECT opens the
 * log while the lock is a shared one: only then others may read it.
 * @throws SQLITE_BUSY
 */
export function shareWithReaders(database: DatabaseSyncInstance): void {
  database.exec(`
    PRAGMA journal_mode = DELETE; PRAGMA locking_mode = NORMAL;
    PRAGMA journal_mode = WAL; SELECT 1 FROM sqlite_master;
    PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; PRAGMA locking_mode = NORMAL; COMMIT;`);
}

/** Empties the log into the file. @throws SQLITE_BUSY while another process reads it. */
export function unlockItself(database: DatabaseSyncInstance): void {
  database.exec("PRAGMA journal_mode = DELETE; PRAGMA locking_mode = NORMAL; SELECT 1 FROM sqlite_master;");
}

/** For a store that another process has open. */
export function locked(path: string, cause: unknown): CoordinatorError {
  return new CoordinatorError(
    "store_locked",
    `the store ${path} can't be opened: another process has it open, perhaps by another name: a coordinator ("callnumber serve"), ` +
      "or for a moment a backup. Stop it first and start it again afterwards, or ask a coordinator over HTTP",
    { cause },
  );
}

/** For a process whose lock is not held any more. */
export function lockLost(path: string): CoordinatorError {
  return new CoordinatorError(
    "store_locked",
    `the lock file of the store ${path} was removed or replaced, so another coordinator may have the store open; ` +
      "this one leases no more. See that there is one only, then start it again",
  );
}
