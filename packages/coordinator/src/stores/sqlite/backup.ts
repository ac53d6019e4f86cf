/**
 * Backs up an embedded store while it leases, from its own process or from another one. Reads through SQLite only, in one
 * transaction, and takes no lock: the backup is the store at one moment, in a file without a log.
 */
import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { isLink } from "../../platform/real-path.js";
import { missing, unusable } from "./errors.js";
import { makePrivateFile, mustNotBeMounted, storePathOf, syncFolderOf } from "./file-checks.js";
import { MARK_AS_BACKUP } from "./file-identity.js";
import { mustBeOurs } from "./schema.js";

export interface SqliteBackup {
  /** Absolute path of the new file. */
  readonly path: string;
  readonly bytes: number;
}

/**
 * Writes a backup of the store at `path` into the new file `to`, synced when this returns. Blocks its process meanwhile, so a
 * coordinator leaves it to another process. The backup is marked as one: wherever it is put, also over the store itself, opening it
 * fails with `store_copied` until it is recovered.
 * @throws TypeError when `to` exists: nothing is ever overwritten. CoordinatorError `store_not_found`, `store_corrupt` (not a store),
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
  try {
    rmSync(partial, { force: true });
    makePrivateFile(partial);
    // No prepared statement: it would keep the store's files open until it is garbage-collected.
    withDatabase(source, (database) => database.exec(`VACUUM INTO '${partial.replaceAll("'", "''")}'`), true);
    withDatabase(partial, (database) => mustBeOurs(database, source));
    // The sync that ends this transaction writes the whole file. In WAL mode, as a store is: put in its place, it needs no change.
    withDatabase(partial, (database) => {
      database.exec(`PRAGMA synchronous = FULL; ${MARK_AS_BACKUP}; PRAGMA journal_mode = WAL`);
    });
    renameSync(partial, target);
    syncFolderOf(target);
  } catch (error) {
    for (const rest of [partial, `${partial}-journal`, `${partial}-wal`, `${partial}-shm`])
      rmSync(rest, { force: true });
    throw unusable(error, source);
  }
  return { path: target, bytes: statSync(target).size };
}

function withDatabase(path: string, use: (database: DatabaseSyncInstance) => void, readOnly = false): void {
  const database = new DatabaseSync(path, { readOnly });
  try {
    use(database);
  } finally {
    database.close();
  }
}
