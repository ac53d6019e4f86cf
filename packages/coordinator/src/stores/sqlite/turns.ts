/**
 * The turns of the embedded store: all jobs of one turn of the event loop in one transaction, answered when it is on the disk.
 * Knows nothing of runs.
 */
import type { DatabaseSyncInstance, StatementSyncInstance } from "@photostructure/sqlite";
import { CoordinatorError } from "../../errors.js";
import { failed, isOfSqlite, reasonOf, unusable } from "./faults.js";
import type { SqliteFile } from "./file.js";
import { type JobOutcome, TurnQueue } from "./turn-queue.js";

export interface TurnWatcher {
  /** Before each commit. @throws anything: then nothing is committed, now or later. */
  committing(): void;
  /** After it, before its answers. */
  committed(): void;
  /** What the transaction wrote is undone. */
  rolledBack(): void;
  /** Nothing is answered from now on, and nobody knows what is on the disk. */
  failed(): void;
}

export class SqliteTurns {
  readonly #file: SqliteFile;
  readonly #watcher: TurnWatcher;
  readonly #statements: Record<"begin" | "commit" | "rollback", StatementSyncInstance>;
  readonly #queue = new TurnQueue((jobs) => this.#inOneTransaction(jobs));
  #failure: CoordinatorError | undefined;
  #isClosed = false;

  constructor(file: SqliteFile, watcher: TurnWatcher) {
    this.#file = file;
    this.#watcher = watcher;
    this.#statements = preparedAll(file.database, { begin: "BEGIN IMMEDIATE", commit: "COMMIT", rollback: "ROLLBACK" });
  }

  /** Does a job with the others of its turn. A CoordinatorError that it throws, before it has written anything, is its own. */
  add<T>(job: () => T): Promise<T> {
    return this.#queue.add(job);
  }

  /** Reads outside of any transaction. @throws CoordinatorError when the store is closed or has failed. */
  read<T>(read: () => T): T {
    this.#mustWork();
    try {
      return read();
    } catch (error) {
      throw isOfSqlite(error) ? unusable(error, this.#file.path) : error;
    }
  }

  /** Does what waits; takes nothing more. Answers whether it was open until now. */
  close(): boolean {
    if (this.#isClosed) return false;
    this.#queue.flush();
    this.#isClosed = true;
    return true;
  }

  /** Refusals fail their own job; everything else fails the whole turn, and a fault of SQLite the store. */
  #inOneTransaction(jobs: readonly (() => unknown)[]): JobOutcome<unknown>[] {
    this.#mustWork();
    this.#mustBeInPlace();
    this.#begin();
    const outcomes = this.#doAll(jobs);
    try {
      this.#watcher.committing();
      this.#statements.commit.run();
    } catch (error) {
      this.#rollBack();
      this.#failFor(error);
    }
    this.#watcher.committed();
    return outcomes;
  }

  #doAll(jobs: readonly (() => unknown)[]): JobOutcome<unknown>[] {
    try {
      return jobs.map(outcomeOf);
    } catch (error) {
      this.#rollBack();
      if (!isOfSqlite(error)) throw error;
      this.#failFor(error);
    }
  }

  #mustBeInPlace(): void {
    try {
      this.#file.mustBeInPlace();
    } catch (error) {
      this.#failure = error instanceof CoordinatorError ? error : failed(error, this.#file.path);
      throw this.#failure;
    }
  }

  /** Nothing is written yet: whatever stands in the way may pass. */
  #begin(): void {
    try {
      this.#statements.begin.run();
    } catch (cause) {
      throw new CoordinatorError(
        "store_unavailable",
        `the store ${this.#file.path} is busy (${reasonOf(cause)}); does another program use the file?`,
        { cause },
      );
    }
  }

  #rollBack(): void {
    this.#watcher.rolledBack();
    try {
      this.#statements.rollback.run();
    } catch {
      // SQLite has rolled back by itself, or can't; nothing of this turn was answered either way.
    }
  }

  /**
   * After a failed write or sync nobody knows what is on the disk, and a later sync that succeeds proves nothing. So this
   * process stops leasing; the next one reads what the file really holds, and doubts it.
   */
  #failFor(error: unknown): never {
    this.#failure = failed(error, this.#file.path);
    this.#watcher.failed();
    throw this.#failure;
  }

  #mustWork(): void {
    if (this.#isClosed) throw new CoordinatorError("store_unavailable", `the store ${this.#file.path} is closed`);
    if (this.#failure) throw this.#failure;
  }
}

export function preparedAll<Name extends string>(
  database: DatabaseSyncInstance,
  statements: Readonly<Record<Name, string>>,
): Record<Name, StatementSyncInstance> {
  const entries = Object.entries<string>(statements).map(([name, sql]) => [name, database.prepare(sql)]);
  return Object.fromEntries(entries) as Record<Name, StatementSyncInstance>;
}

function outcomeOf(job: () => unknown): JobOutcome<unknown> {
  try {
    return { value: job() };
  } catch (error) {
    if (error instanceof CoordinatorError) return { error };
    throw error;
  }
}
