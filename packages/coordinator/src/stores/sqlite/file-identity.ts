/**
 * Is it the same file? A store keeps the inode and the birth time of the file that it was made in. A copy, or a file restored next to
 * the old one, is another file; while the original may be in use, the copy must not lease.
 *
 * A file that is moved within its file system stays the same file, and so does one that is overwritten in place: whether it was
 * rolled back is decided elsewhere (guard/restart-decision.ts). Where a file system has no birth time, inodes alone are compared.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { chmodSync, statSync } from "node:fs";
import { commandLine, DEFAULT_NAMESPACE } from "@callnumber/protocol/api";
import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import { CoordinatorError } from "../../errors.js";

export const IDENTITY_SCHEMA = `
  CREATE TABLE identity (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    inode TEXT NOT NULL,
    birth_ns TEXT
  ) STRICT;
`;

export interface FileIdentity {
  readonly inode: string;
  /** Null where the file system has none. */
  readonly birthNs: string | null;
}

/** In place of an inode, which no file has: a backup is a copy wherever it is. */
const BACKUP_INODE = "backup";
export const MARK_AS_BACKUP = `UPDATE identity SET inode = '${BACKUP_INODE}', birth_ns = NULL`;

/** The longest wait for a tick of a file system's clock, ms. */
const TICK_MS_MAX = 100;

/** Stores the identity of the file at `path` in its database. */
export function keepIdentity(database: DatabaseSyncInstance, path: string): void {
  const { ino } = statSync(path, { bigint: true });
  const keep = database.prepare("INSERT OR REPLACE INTO identity (only_row, inode, birth_ns) VALUES (1, ?, ?)");
  keep.run(String(ino), reliableBirthNs(path));
}

/** The error when the database was made in another file than the one at `path`; undefined when it was made there. */
export function faultOfIdentity(database: DatabaseSyncInstance, path: string): CoordinatorError | undefined {
  const row = database.prepare("SELECT inode, birth_ns FROM identity").get() as
    | { inode: string; birth_ns: string | null }
    | undefined;
  const { ino, birthtimeNs } = statSync(path, { bigint: true });
  const found: FileIdentity = { inode: String(ino), birthNs: String(birthtimeNs) };
  const kept: FileIdentity | undefined = row && { inode: row.inode, birthNs: row.birth_ns };
  return kept !== undefined && isSameFile(kept, found) ? undefined : copied(path, kept, found, namespaceIn(database));
}

export function isSameFile(kept: FileIdentity, found: FileIdentity): boolean {
  return kept.inode === found.inode && (kept.birthNs === null || kept.birthNs === found.birthNs);
}

/**
 * The birth time, or null where the system has none and reports the time of the last change in its place: found out by changing
 * something (the mode, to its own value) until that time moves. Null too where that can't be found out.
 */
function reliableBirthNs(path: string): string | null {
  const first = statSync(path, { bigint: true });
  const untilMs = Date.now() + TICK_MS_MAX;
  while (Date.now() < untilMs) {
    if (!touchMode(path, first.mode)) return null;
    const { ctimeNs, birthtimeNs } = statSync(path, { bigint: true });
    if (ctimeNs !== first.ctimeNs) return steadyBirthNs(first.birthtimeNs, birthtimeNs);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
  }
  return null;
}

/** Returns whether it was allowed: only the owner may. */
function touchMode(path: string, mode: bigint): boolean {
  try {
    chmodSync(path, Number(mode & 0o7777n));
    return true;
  } catch {
    return false;
  }
}

/** From two readings, between which the file was changed. */
export function steadyBirthNs(firstNs: bigint, secondNs: bigint): string | null {
  return firstNs === secondNs && firstNs > 0n ? String(firstNs) : null;
}

/** Recovering one namespace accepts the copy; the coordinator then recovers the others. */
function namespaceIn(database: DatabaseSyncInstance): string {
  const row = database.prepare("SELECT name FROM namespaces ORDER BY name LIMIT 1").get() as
    | { name: string }
    | undefined;
  return row?.name ?? DEFAULT_NAMESPACE;
}

function copied(
  path: string,
  kept: FileIdentity | undefined,
  found: FileIdentity,
  namespace: string,
): CoordinatorError {
  return new CoordinatorError(
    "store_copied",
    `${path} is a copy: the store was made in ${describe(kept)}, and this is ${describe(found)}. Use the original: both would lease the same runs. ` +
      `If it is lost, run \`${commandLine("recover", namespace)}\``,
  );
}

function describe(identity: FileIdentity | undefined): string {
  if (identity === undefined) return "an unknown file";
  if (identity.inode === BACKUP_INODE) return "a backup";
  const { inode, birthNs } = identity;
  const born = birthNs === null ? "" : ` of ${new Date(Number(BigInt(birthNs) / 1_000_000n)).toISOString()}`;
  return `inode ${inode}${born}`;
}
