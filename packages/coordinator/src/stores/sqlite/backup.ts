/**
 * Backs up an embedded store while it leases, from its own process or from another one. Reads through SQLite only, in one
 * transaction, and takes no lock: the backup is the store at one moment, in a file without a log.
 */
import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { isLink } from "../../platform/real-path.js";
import { isFull, missing, reasonOf, unusable } from "./errors.js";
import { makePrivateFile, mustNotBeMounted, storePathOf, syncFolderOf } from "./file-checks.js";
import { MARK_AS_BACKUP } from "./file-identity.js";
import { mustBeOurs } from "./schema.js";

export interface SqliteBackup {
  /** Absolute path of the new file. */
  readonly path: string;
  readonly bytes: number;
  /** What the backup holds. */
  readonly namespaces: readonly { readonly namespace: string; readonly storeId: string }[];
}

/**
 * Writes a backup of the store at `path` into the new file `to`, synced when this returns. Blocks its process meanwhile, so a
 * coordinator leaves it to another process. The backup is marked as one: wherever it is put, also over the store itself, opening it
 * fails with `store_copied` until it is recovered.
 * @throws TypeError when `to` exists, because nothing is ever overwritten, or can't be made. CoordinatorError `store_not_found`, `store_corrupt` (not a store),
 *   `store_schema_unsupported`, `store_unavailable`; then no file `to` is there.
 */
export function backupSqliteFile(path: string, to: string): SqliteBackup {
  const source = storePathOf(path, { create: false });
  mustNotBeMounted(source);
  const target = resolve(to);
  // A link as well: it would be replaced.
  if (existsSync(target) || isLink(target))
    throw new TypeError(`${target} exists already; a backup overwrites nothing`);
  if (!existsSync(source)) throw missing(source);
  const partial = `${target}.partial`;
  makeTarget(partial, target);
  let namespaces: SqliteBackup["namespaces"];
  try {
    // No prepared statement: it would keep the store's files open until it is garbage-collected.
    withDatabase(source, (database) => database.exec(`VACUUM INTO '${partial.replaceAll("'", "''")}'`), true);
    namespaces = withDatabase(partial, (database) => {
      mustBeOurs(database, source);
      return namespacesIn(database);
    });
    // The sync that ends this transaction writes the whole file. In WAL mode, as a store is: put in its place, it needs no change.
    withDatabase(partial, (database) => {
      database.exec(`PRAGMA synchronous = FULL; ${MARK_AS_BACKUP}; PRAGMA journal_mode = WAL`);
    });
    renameSync(partial, target);
    syncFolderOf(target);
  } catch (error) {
    for (const rest of [partial, `${partial}-journal`, `${partial}-wal`, `${partial}-shm`])
      rmSync(rest, { force: true });
    // The store is only read.
    if (isFull(error)) throw cannotBeMade(target, "its disk is full", error);
    throw unusable(error, source);
  }
  return { path: target, bytes: statSync(target).size, namespaces };
}

/** What fails here is no fault of the store. */
function makeTarget(partial: string, target: string): void {
  try {
    rmSync(partial, { force: true });
    makePrivateFile(partial);
  } catch (error) {
    const folder = dirname(target);
    const reason = existsSync(folder) ? reasonOf(error) : `there is no directory ${folder}`;
    throw cannotBeMade(target, reason, error);
  }
}

function cannotBeMade(target: string, reason: string, cause: unknown): TypeError {
  return new TypeError(`the backup ${target} can't be made: ${reason}`, { cause });
}

function namespacesIn(database: DatabaseSyncInstance): SqliteBackup["namespaces"] {
  const rows = database.prepare("SELECT name AS namespace, sid AS storeId FROM namespaces ORDER BY name").all();
  return rows as unknown as SqliteBackup["namespaces"];
}

function withDatabase<T>(path: string, use: (database: DatabaseSyncInstance) => T, readOnly = false): T {
  const database = new DatabaseSync(path, { readOnly });
  try {
    return use(database);
  } finally {
    database.close();
  }
}
