/**
 * Opens the file of the embedded store: alone, durable, where it was made, and never by accident a new one.
 * Knows SQLite; knows nothing of runs. From here on the file is opened through SQLite only.
 * Guarantees: G11 (docs/guarantees.md).
 */

import { existsSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";
import process from "node:process";
import { shellWord } from "@callnumber/protocol/operator";
import type { ErrorCode } from "@callnumber/protocol/wire";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { CoordinatorError } from "../errors.js";
import { makePrivateFolder } from "../platform/private-file.js";
import { isBusy, unusable } from "./sqlite-faults.js";
import { faultOfIdentity } from "./sqlite-file-identity.js";
import {
  lockBeside,
  locked,
  lockItself,
  lockLost,
  type SqliteLock,
  shareWithReaders,
  unlockItself,
} from "./sqlite-lock.js";
import { type Machine, networkFileSystemOf } from "./sqlite-machine.js";
import { faultOfStoreFile, makePrivateFile } from "./sqlite-private-file.js";
import { mustNotBeMounted, storePathOf } from "./sqlite-real-path.js";
import { holdsNothing, makeSchema, mustBeOurs } from "./sqlite-schema.js";

/** Nobody else should write; a tool that looks may hold the file for a moment. */
const BUSY_TIMEOUT_MS = 1_000;

export interface SqliteFileOptions {
  /** Whether a new file may be made where there is none. */
  readonly create: boolean;
  /** Called where there is no store, before anything is made. @throws when one is known to have been there. */
  readonly mustNotBeLost: () => void;
  /** Opens also a file that is a copy, with its fault: whether the copy is accepted is the caller's decision. */
  readonly acceptCopy: boolean;
  readonly allowNetworkFileSystem: boolean;
  readonly machine: Pick<Machine, "fileSystemTypeOf">;
}

export interface SqliteFile {
  readonly database: DatabaseSyncInstance;
  /** Absolute, for messages. */
  readonly path: string;
  /** Whether the file was made just now. */
  readonly isNew: boolean;
  /** Why the file is a copy; undefined when it is the one that the store was made in. */
  readonly copyFault: CoordinatorError | undefined;
  /** The name of the network file system that it lies on, and that was allowed; undefined for a local one. */
  readonly networkFileSystem: string | undefined;
  /**
   * @throws CoordinatorError `store_locked`, `store_copied`, `store_unavailable` when lock, file or log are not any more those
   *   that others would meet.
   */
  mustBeInPlace(): void;
  close(): void;
}

/**
 * Opens or, with `create`, makes the file. While it is open no other process can open it this way.
 * @throws CoordinatorError `store_missing`, `store_locked`, `store_copied` (unless accepted), `store_corrupt` (not a store),
 *   `store_unknown_schema`, `store_unavailable` (a network file system, links, another user's file, or the file system refuses).
 */
export function openSqliteFile(givenPath: string, options: SqliteFileOptions): SqliteFile {
  const { create, mustNotBeLost } = options;
  const mustBeMade = (at: string) => {
    mustNotBeLost();
    if (!create) throw missing(at);
  };
  const path = storePathOf(givenPath, { create });
  let lock: SqliteLock | undefined;
  let database: DatabaseSyncInstance | undefined;
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) mustBeMade(path);
    mustBeStoreFile(path, stats);
    mustNotBeMounted(path);
    const networkFileSystem = networkFileSystemOf(nearestThatExists(path), options.machine);
    if (networkFileSystem !== undefined && !options.allowNetworkFileSystem) throw notLocal(path, networkFileSystem);
    makePrivateFolder(dirname(path));
    lock = lockBeside(path);
    if (create) makePrivateFile(path);
    database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
    lockItself(database);
    const isNew = holdsNothing(database);
    if (isNew) mustBeMade(path);
    // Before anything is written: the file may belong to another program.
    if (!isNew) mustBeOurs(database, path);
    const copyFault = isNew ? undefined : faultOfIdentity(database, path);
    if (copyFault !== undefined && !options.acceptCopy) throw copyFault;
    // FULL: a lease is on the disk before it is answered. The build's own default for WAL would lose the last ones.
    database.exec("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;");
    shareWithReaders(database);
    if (isNew) makeSchema(database, path);
    return {
      database,
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
 * SQLite keeps a connection, and its lock, whose statements were not collected yet: `unlockItself` takes both log and lock away, so that
 * a copy of the file alone is not an old state. The lock beside the file goes last: until then no other process may open the store.
 */
function closeBoth(database: DatabaseSyncInstance | undefined, lock: SqliteLock | undefined): () => void {
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
 * What has no name any more goes with this process. A log is taken away by any program that closes the file last, as far as
 * SQLite can tell: and it can't, once this process has opened and closed the file in another way.
 */
function mustBeInPlace(path: string, lock: SqliteLock): () => void {
  const logPath = `${path}-wal`;
  const inode = inodeIfThere(path);
  const logInode = inodeIfThere(logPath);
  return () => {
    if (!lock.isHeld()) throw lockLost(path);
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

function notInPlace(code: ErrorCode, path: string, remedy: string): CoordinatorError {
  const message = `the file ${path} was removed or replaced while the store was open; this coordinator leases no more. ${remedy}`;
  return new CoordinatorError(code, message);
}

function nearestThatExists(path: string): string {
  return existsSync(path) ? path : nearestThatExists(dirname(path));
}

/** Locks over a network hold or don't, and nobody can tell; a write that was acknowledged may not be on any disk. */
function notLocal(path: string, networkFileSystem: string): CoordinatorError {
  return new CoordinatorError(
    "store_unavailable",
    `the store ${path} would lie on a network file system (${networkFileSystem}), where a lock can't be relied on and two machines could ` +
      "lease the same runs. Put it on a local disk, or use Redis; or say --allow-network-file-system, when one machine alone ever uses it",
  );
}

/** Of what is there already; what is made here has one name, and is readable for this user alone. */
function mustBeStoreFile(path: string, stats: Stats | undefined): void {
  const fault = stats && (faultOfKind(stats) ?? faultOfStoreFile(stats, path, process.geteuid?.()));
  if (fault !== undefined) throw new CoordinatorError("store_unavailable", `the store ${path} is not used: ${fault}`);
}

/** Two hard links are two paths, with a lock and a log for each: two processes would lease the same runs and not notice. */
function faultOfKind(stats: Stats): string | undefined {
  if (stats.isDirectory()) return "it is a directory. Give the path of a file in it";
  if (!stats.isFile()) return "it is not a regular file. Give the path of one";
  if (stats.nlink === 1) return undefined;
  return "the file has more than one name (hard links); opened by two names it would lease runs twice. Leave one of them";
}

export function missing(path: string): CoordinatorError {
  return new CoordinatorError(
    "store_missing",
    `there is no store at ${path}. If an archive has call numbers already, find its store: a volume that is not mounted, another ` +
      `directory, another user. To begin a new one: callnumber serve --create --store ${shellWord(`sqlite:${path}`)}`,
  );
}
