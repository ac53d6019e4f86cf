/**
 * Backs an embedded store up while it leases, from its own process or from another one. Reads through SQLite only, in one
 * transaction, and takes no lock: what it writes is the store as it stood at one moment, in a file without a log beside it.
 */
import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { isLink } from "../platform/real-path.js";
import { unusable } from "./sqlite-faults.js";
import { missing } from "./sqlite-file.js";
import { MARK_AS_BACKUP } from "./sqlite-file-identity.js";
import { makePrivateFile, syncFolderOf } from "./sqlite-private-file.js";
import { mustNotBeMounted, storePathOf } from "./sqlite-real-path.js";
import { mustBeOurs } from "./sqlite-schema.js";

export interface SqliteBackup {
  /** Absolute path of the new file. */
  readonly path: string;
  readonly bytes: number;
}

/**
 * Writes a backup of the store at `path` into the new file `to`, on the disk when this returns. Blocks its process meanwhile, so
 * a coordinator leaves it to another one. The backup knows that it is one: wherever it is put, also over the store itself, it is
 * refused with `store_copied` until it is recovered.
 * @throws TypeError when `to` exists: nothing is ever overwritten. CoordinatorError `store_missing`, `store_corrupt` (not a store),
 *   `store_unknown_schema`, `store_unavailable`; then no file `to` is there.
 */
export function backupSqliteFile(path: string, to: string): SqliteBackup {
  const source = storePathOf(path, { create: false });
  mustNotBeMounted(source);
  const target = resolve(to);
  // Of a link as well, wherever it leads: it would be replaced.
  if (existsSync(target) || isLink(target))
    throw new TypeError(`${target} exists already; a backup overwrites nothing`);
  if (!existsSync(source)) throw missing(source);
  const partial = `${target}.partial`;
  try {
    rmSync(partial, { force: true });
    makePrivateFile(partial);
    copyInto(source, partial);
    mustBeStore(partial, source);
    markAsBackup(partial);
    renameSync(partial, target);
    syncFolderOf(target);
  } catch (error) {
    for (const rest of [partial, `${partial}-journal`, `${partial}-wal`, `${partial}-shm`])
      rmSync(rest, { force: true });
    throw unusable(error, source);
  }
  return { path: target, bytes: statSync(target).size };
}

/** Without a prepared statement: one would keep the store's files open until it is collected. */
function copyInto(source: string, target: string): void {
  const database = new DatabaseSync(source, { readOnly: true });
  try {
    database.exec(`VACUUM INTO '${target.replaceAll("'", "''")}'`);
  } finally {
    database.close();
  }
}

function mustBeStore(path: string, source: string): void {
  const database = new DatabaseSync(path);
  try {
    mustBeOurs(database, source);
  } finally {
    database.close();
  }
}

/**
 * The sync that ends this transaction takes the whole file to the disk. As a store keeps it, with a log: a backup that is put in
 * its place needs no change for that.
 */
function markAsBackup(path: string): void {
  const database = new DatabaseSync(path);
  try {
    database.exec(`PRAGMA synchronous = FULL; ${MARK_AS_BACKUP}; PRAGMA journal_mode = WAL`);
  } finally {
    database.close();
  }
}
