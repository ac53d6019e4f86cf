/**
 * The lock next to a store's file, by which one process alone opens it. Everyone who leases from the store changes this file first, so
 * that its time of change (ctime), which no program can set, shows whether someone else has leased since.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync, statSync } from "node:fs";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { lockLost } from "./errors.js";
import { makePrivateFile } from "./file-checks.js";
import type { Machine } from "./machine.js";

/** The longest step of a file system's clock: FAT's is 2 s, others have some milliseconds. */
const STEP_MS_MAX = 2_100;

export class LockFile {
  readonly #storePath: string;
  readonly #database: DatabaseSyncInstance;
  /** Closing any descriptor of the file ends SQLite's lock: this one stays open as long as the lock. */
  readonly #file: number;
  readonly #inode: number;
  readonly #changedNsOf: Machine["changedNsOf"];

  /**
   * Takes the lock, which ends with the process, however it ends. SQLite holds it, on a file that nothing else opens, so that it holds also
   * before there is a database.
   * @throws SQLITE_BUSY when another process holds it; EACCES where this user may not write the file: SQLite would not lock it.
   */
  constructor(storePath: string, { changedNsOf }: Pick<Machine, "changedNsOf">) {
    const path = lockPathOf(storePath);
    makePrivateFile(path);
    this.#storePath = storePath;
    this.#changedNsOf = changedNsOf;
    this.#database = new DatabaseSync(path, { timeout: 0 });
    let file: number | undefined;
    try {
      this.#database.exec("PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE;");
      file = openSync(path, "r+");
      this.#inode = fstatSync(file).ino;
      this.#file = file;
    } catch (error) {
      this.#database.close();
      if (file !== undefined) closeSync(file);
      throw error;
    }
  }

  /** When the file was last changed, ns. */
  changedNs(): string {
    return String(this.#changedNsOf(this.#file));
  }

  /**
   * Changes the file without changing what it holds. On the disk when this returns. Needs the right to write, not ownership.
   * @returns when that was, ns; undefined where the file system notes no such time. @throws when it can't be changed.
   */
  change(): string | undefined {
    const beforeNs = this.changedNs();
    const untilMs = performance.now() + STEP_MS_MAX;
    do {
      ftruncateSync(this.#file, fstatSync(this.#file).size);
      const changedNs = this.changedNs();
      if (changedNs !== beforeNs) {
        fsyncSync(this.#file);
        return changedNs;
      }
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    } while (performance.now() < untilMs);
    return undefined;
  }

  /** @throws CoordinatorError `store_locked`: an operator may have removed a "stale" file, and other processes would not find this lock. */
  mustBeInPlace(): void {
    const found = statSync(lockPathOf(this.#storePath), { throwIfNoEntry: false });
    if (found?.ino !== this.#inode) throw lockLost(this.#storePath);
  }

  close(): void {
    try {
      this.#database.close();
    } finally {
      closeSync(this.#file);
    }
  }
}

function lockPathOf(storePath: string): string {
  return `${storePath}.lock`;
}
