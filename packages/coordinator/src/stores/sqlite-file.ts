/**
 * Opens the file of the embedded store: alone, durable, and never by accident a new one.
 * Knows SQLite; knows nothing of runs.
 */

import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { CoordinatorError } from "../errors.js";

/** "CALL": tells our files from those of other programs that use SQLite. */
const APPLICATION_ID = 0x43414c4c;
const SCHEMA_VERSION = 2;

/** Nobody else should write; a tool that looks may hold the file for a moment. */
const BUSY_TIMEOUT_MS = 1_000;

const SQLITE_BUSY = 5;
const SQLITE_NOT_A_DATABASE = 26;

/**
 * A namespace keeps its record as the guard writes it, field by field, under its checksum. A ledger entry holds the last ledger id of its lease, so that the lease
 * of a run is the first entry at or after it.
 */
const SCHEMA = `
  CREATE TABLE namespaces (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    v TEXT, ns TEXT, sid TEXT, ver TEXT, c TEXT, t TEXT, ep TEXT, g TEXT, p TEXT, n TEXT, rk TEXT, ph TEXT, k TEXT
  ) STRICT;
  CREATE TABLE holders (
    id INTEGER PRIMARY KEY,
    json TEXT NOT NULL UNIQUE
  ) STRICT;
  CREATE TABLE leases (
    namespace_id INTEGER NOT NULL REFERENCES namespaces,
    last_ledger_id INTEGER NOT NULL,
    run_count INTEGER NOT NULL,
    leased_at_ms INTEGER NOT NULL,
    holder_id INTEGER NOT NULL REFERENCES holders,
    nonce TEXT NOT NULL,
    progress_run INTEGER,
    progress_sequence INTEGER,
    progress_state TEXT,
    progress_at_ms INTEGER,
    PRIMARY KEY (namespace_id, last_ledger_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX leases_by_time ON leases (namespace_id, leased_at_ms, last_ledger_id);
`;

export interface SqliteFile {
  readonly database: DatabaseSyncInstance;
  /** Absolute, for messages. */
  readonly path: string;
  /** Whether the file was made just now. */
  readonly isNew: boolean;
  /** Whether the lock that was taken is still the one that others would meet: a "stale" lock file may have been removed. */
  isLocked(): boolean;
  close(): void;
}

/**
 * Opens or, with `create`, makes the file. While it is open no other process can open it this way.
 * @throws CoordinatorError `store_missing`, `store_locked`, `store_corrupt` (not a store), `store_unknown_schema`,
 *   `store_unavailable` (the file system refuses).
 */
export function openSqliteFile(givenPath: string, { create }: { readonly create: boolean }): SqliteFile {
  const path = realPathOf(givenPath);
  if (!create && !existsSync(path)) throw missing(path);
  let lock: DatabaseSyncInstance | undefined;
  let database: DatabaseSyncInstance | undefined;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    mustHaveOneName(path);
    lock = lockBeside(path);
    database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
    const isNew = holdsNothing(database);
    if (isNew && !create) throw missing(path);
    // Before anything is written: the file may belong to another program.
    if (!isNew) mustBeOurs(database, path);
    // FULL: a lease is on the disk before it is answered. The build's own default for WAL would lose the last ones.
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;");
    if (isNew) makeSchema(database, path);
    const lockInode = statSync(lockPathOf(path)).ino;
    return {
      database,
      path,
      isNew,
      isLocked: () => statSync(lockPathOf(path), { throwIfNoEntry: false })?.ino === lockInode,
      close: closeBoth(database, lock),
    };
  } catch (error) {
    closeBoth(database, lock)();
    throw error instanceof CoordinatorError ? error : asCoordinatorError(error, path);
  }
}

/**
 * The lock goes last: until then nobody else may touch the file. The log is emptied into the file first, because SQLite keeps
 * a connection alive whose statements were not collected yet, and a copy of the file without the log would be an old state.
 */
function closeBoth(database: DatabaseSyncInstance | undefined, lock: DatabaseSyncInstance | undefined): () => void {
  return () => {
    try {
      database?.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // The log stays beside the file, as after a kill, and the next start reads it.
    }
    database?.close();
    lock?.close();
  };
}

/** Without links: the lock and SQLite's own files lie beside the file itself, whatever name it was opened by. */
function realPathOf(givenPath: string): string {
  const path = resolve(givenPath);
  if (existsSync(path)) return realpathSync(path);
  return existsSync(dirname(path)) ? join(realpathSync(dirname(path)), basename(path)) : path;
}

/** Two hard links are two paths, with a lock and a log for each: two processes would lease the same runs and not notice. */
function mustHaveOneName(path: string): void {
  if (!existsSync(path) || statSync(path).nlink === 1) return;
  throw new CoordinatorError(
    "store_unavailable",
    `the file ${path} has more than one name (hard links); opened by two names it would lease runs twice. Leave one of them`,
  );
}

/**
 * Locks a file of its own beside the store: a process that opens and closes its own database file, to copy or to hash it,
 * would silently drop SQLite's locks on it. Nothing else opens this one. The lock ends with the process, however it ends.
 */
function lockBeside(path: string): DatabaseSyncInstance {
  const lock = new DatabaseSync(lockPathOf(path), { timeout: 0 });
  try {
    lock.exec("PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE;");
    return lock;
  } catch (error) {
    lock.close();
    if ((error as { errcode?: unknown }).errcode !== SQLITE_BUSY) throw error;
    throw new CoordinatorError(
      "store_locked",
      `another process has the store ${path} open; only one may. If that is a coordinator ("callnumber serve"), ` +
        "stop it first, or ask it over HTTP",
      { cause: error },
    );
  }
}

/** True also for what a process leaves that dies while it makes the file. */
function holdsNothing(database: DatabaseSyncInstance): boolean {
  const { tables } = database.prepare("SELECT count(*) AS tables FROM sqlite_master").get() as { tables: number };
  return tables === 0 && pragma(database, "application_id") === 0;
}

function lockPathOf(path: string): string {
  return `${path}.lock`;
}

function makeSchema(database: DatabaseSyncInstance, path: string): void {
  database.exec(`BEGIN IMMEDIATE;
    PRAGMA application_id = ${APPLICATION_ID};
    PRAGMA user_version = ${SCHEMA_VERSION};
    ${SCHEMA}
    COMMIT;`);
  // SQLite syncs the file, not its name: without this a power loss could leave leases in a file that no folder holds.
  const folder = openSync(dirname(path), "r");
  fsyncSync(folder);
  closeSync(folder);
}

function mustBeOurs(database: DatabaseSyncInstance, path: string): void {
  if (pragma(database, "application_id") !== APPLICATION_ID) {
    throw new CoordinatorError(
      "store_corrupt",
      `${path} is an SQLite database, but not a Callnumber store; nothing was changed in it`,
    );
  }
  const schemaVersion = pragma(database, "user_version");
  if (schemaVersion !== SCHEMA_VERSION) {
    const message = `the store ${path} has schema version ${schemaVersion}; this release reads version ${SCHEMA_VERSION}. Use the release that wrote it`;
    throw new CoordinatorError("store_unknown_schema", message);
  }
}

function pragma(database: DatabaseSyncInstance, name: string): unknown {
  return (database.prepare(`PRAGMA ${name}`).get() as Record<string, unknown>)[name];
}

function missing(path: string): CoordinatorError {
  return new CoordinatorError(
    "store_missing",
    `there is no store at ${path}. To begin a new one there, say --create. ` +
      "If an archive already holds call numbers, its store must be somewhere: a volume not mounted, another folder, another user",
  );
}

function asCoordinatorError(error: unknown, path: string): CoordinatorError {
  const { errcode, message } = error as { errcode?: unknown; message?: unknown };
  if (errcode === SQLITE_NOT_A_DATABASE) {
    return new CoordinatorError("store_corrupt", `${path} is not a Callnumber store, nor any SQLite database`, {
      cause: error,
    });
  }
  return new CoordinatorError("store_unavailable", `the store ${path} can't be opened: ${String(message)}`, {
    cause: error,
  });
}
