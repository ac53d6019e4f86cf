/**
 * Opens the file of the embedded store: exclusively, durably, where it was made, and never by accident a new one. Knows SQLite;
 * knows nothing of runs. While it is open, the file is accessed through SQLite only.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { type CoordinatorError } from "../../errors.js";
import { makePrivateDirectory } from "../../platform/private-file.js";
import { isBusy, locked, missing, notInPlace, notLocal, unusable } from "./errors.js";
import { makePrivateFile, mustBeStoreFile, mustNotBeMounted, nearestThatExists, storePathOf } from "./file-checks.js";
import { faultOfIdentity } from "./file-identity.js";
import { LockFile } from "./lock-file.js";
import { type Machine, networkFileSystemOf } from "./machine.js";
import { holdsNothing, makeSchema, mustBeOurs } from "./schema.js";

/** A tool that reads the file may lock it for a moment. */
const BUSY_TIMEOUT_MS = 1_000;

export interface SqliteFileOptions {
  /** Whether a new file may be made where there is none. */
  readonly create: boolean;
  /** Called where there is no store, before anything is made. @throws when one is known to have been there. Default: nothing is known. */
  readonly mustNotBeLost?: () => void;
  /** Opens also a copy, for an operator who states that the original is gone: every step but `recover` and the seal of a move fails until one is done. Default false. */
  readonly acceptCopy?: boolean;
  /** An operator states that no other machine ever uses the store, although it is on a network file system. Default false. */
  readonly allowNetworkFileSystem?: boolean;
  readonly machine: Pick<Machine, "fileSystemTypeOf" | "changedNsOf">;
}

export interface SqliteFile {
  readonly database: DatabaseSyncInstance;
  readonly lock: LockFile;
  /** Absolute, for messages. */
  readonly path: string;
  /** Whether the file was made just now. */
  readonly isNew: boolean;
  /** Why the file is a copy; undefined when it is the one that the store was made in. */
  readonly copyFault: CoordinatorError | undefined;
  /** The name of the network file system that it lies on, and that was allowed; undefined for a local one. */
  readonly networkFileSystem: string | undefined;
  /**
   * @throws CoordinatorError `store_locked`, `store_copied`, `store_unavailable` when another process would no longer find this
   *   lock, file or log under its name.
   */
  mustBeInPlace(): void;
  close(): void;
}

/**
 * Opens or, with `create`, makes the file. While it is open no other process can open it this way.
 * @throws CoordinatorError `store_not_found`, `store_locked`, `store_copied` (unless accepted), `store_corrupt` (not a store),
 *   `store_schema_unsupported`, `store_unavailable` (a network file system, links, another user's file, or the file system refuses).
 */
export function openSqliteFile(givenPath: string, options: SqliteFileOptions): SqliteFile {
  const { create, mustNotBeLost } = options;
  const path = storePathOf(givenPath, { create });
  const mustBeMade = () => {
    mustNotBeLost?.();
    if (!create) throw missing(path);
  };
  let lock: LockFile | undefined;
  let database: DatabaseSyncInstance | undefined;
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) mustBeMade();
    else mustBeStoreFile(path, stats);
    mustNotBeMounted(path);
    const networkFileSystem = networkFileSystemOf(nearestThatExists(path), options.machine);
    if (networkFileSystem !== undefined && !options.allowNetworkFileSystem) throw notLocal(path, networkFileSystem);
    makePrivateDirectory(dirname(path));
    // Two locks, because a process that opens and closes its own database file without SQLite, to copy it, drops the one on the file.
    lock = new LockFile(path, options.machine);
    if (create) makePrivateFile(path);
    database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
    lockItself(database);
    const isNew = holdsNothing(database);
    if (isNew) mustBeMade();
    // Before anything is written: the file may belong to another program.
    else mustBeOurs(database, path);
    const copyFault = isNew ? undefined : faultOfIdentity(database, path);
    if (copyFault !== undefined && !options.acceptCopy) throw copyFault;
    // FULL: a lease is on the disk before its response. The build's own default for WAL would lose the last ones.
    database.exec("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;");
    shareWithReaders(database);
    if (isNew) makeSchema(database, path);
    return {
      database,
      lock,
      path,
      isNew,
      copyFault,
      networkFileSystem,
      mustBeInPlace: mustBeInPlace(path, lock),
      close: closeBoth(database, lock),
    };
  } catch (error) {
    closeBoth(database, lock)();
    throw isBusy(error) ? locked(path, error) : unusable(error, path);
  }
}

/**
 * SQLite keeps a connection, and its lock, whose statements were not collected yet: `unlockItself` removes both log and lock, so that
 * a copy of the file alone is not an old state. The lock file goes last: until then no other process may open the store.
 */
function closeBoth(database: DatabaseSyncInstance | undefined, lock: LockFile | undefined): () => void {
  return () => {
    try {
      if (database !== undefined) unlockItself(database);
    } catch {
      // Another process reads the file, or the disk is full: the log stays, as after a kill, and the next start reads it.
    }
    try {
      database?.close();
    } finally {
      lock?.close();
    }
  };
}

/**
 * A file without a name is lost with this process. The log is removed by any program that closes the file last, as far as SQLite
 * can show: and it can't, once this process has opened and closed the file in another way.
 */
function mustBeInPlace(path: string, lock: LockFile): () => void {
  const logPath = `${path}-wal`;
  const inode = inodeIfThere(path);
  const logInode = inodeIfThere(logPath);
  return () => {
    lock.mustBeInPlace();
    if (inodeIfThere(path) !== inode) {
      throw notInPlace("store_copied", path, "See which file is the right one, then start it again");
    }
    if (inodeIfThere(logPath) !== logInode) {
      throw notInPlace("store_unavailable", logPath, "See that no other program opens the store, then start it again");
    }
  };
}

function inodeIfThere(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

/**
 * Locks the file itself, by its inode, so under every name that it has, against every other connection. First of all: nothing may read the log before, because a log that was left
 * next to another name of a file in use would be written into it.
 * @throws SQLITE_BUSY when another process has the file open, by whatever name.
 */
function lockItself(database: DatabaseSyncInstance): void {
  database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT;");
}

/**
 * Turns the lock of `lockItself` into one that lets others read, for backups, and still keeps a second `lockItself` out. SQLite can't
 * do so in one step: in between, another process may open the file, which the second BEGIN EXCLUSIVE finds out. SELECT opens the
 * log while the lock is a shared one: only then others may read it.
 * @throws SQLITE_BUSY
 */
function shareWithReaders(database: DatabaseSyncInstance): void {
  database.exec(`
    PRAGMA journal_mode = DELETE; PRAGMA locking_mode = NORMAL;
    PRAGMA journal_mode = WAL; SELECT 1 FROM sqlite_master;
    PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; PRAGMA locking_mode = NORMAL; COMMIT;`);
}

/** Empties the log into the file. @throws SQLITE_BUSY while another process reads it. */
function unlockItself(database: DatabaseSyncInstance): void {
  database.exec("PRAGMA journal_mode = DELETE; PRAGMA locking_mode = NORMAL; SELECT 1 FROM sqlite_master;");
}
