/**
 * The transactions of the embedded store: all jobs of one event-loop iteration in one transaction, so that they share one sync of
 * the disk. A job is answered when it is on the disk. Knows nothing of runs.
 */
import type { DatabaseSyncInstance, StatementSyncInstance } from "@photostructure/sqlite";
import { CoordinatorError } from "../../errors.js";
import { failed, isOfSqlite, reasonOf, unusable } from "./errors.js";
import type { SqliteFile } from "./file.js";

export interface TransactionHooks {
  /** Before each commit. @throws anything: then nothing is committed, now or later. */
  committing(): void;
  /** After the commit, before its jobs are answered. */
  committed(): void;
  /** The transaction's writes are undone. */
  rolledBack(): void;
  /** From now on every job fails, and what is on the disk is not known. */
  failed(): void;
}

interface QueuedJob {
  /** Runs it within the transaction. Returns what answers it once that is on the disk. @throws what fails the whole transaction. */
  readonly run: () => () => void;
  readonly reject: (error: unknown) => void;
}

export class SqliteTransactions {
  readonly #file: SqliteFile;
  readonly #hooks: TransactionHooks;
  readonly #statements: Record<"begin" | "commit" | "rollback", StatementSyncInstance>;
  #queue: QueuedJob[] = [];
  #failure: CoordinatorError | undefined;
  #isClosed = false;

  constructor(file: SqliteFile, hooks: TransactionHooks) {
    this.#file = file;
    this.#hooks = hooks;
    this.#statements = preparedAll(file.database, { begin: "BEGIN IMMEDIATE", commit: "COMMIT", rollback: "ROLLBACK" });
  }

  /**
   * Runs a job in one transaction with the other jobs of this event-loop iteration. A CoordinatorError that it throws before it has
   * written anything fails this job alone.
   */
  add<T>(job: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const run = () => {
        try {
          const value = job();
          return () => resolve(value);
        } catch (error) {
          if (error instanceof CoordinatorError) return () => reject(error);
          throw error;
        }
      };
      this.#queue.push({ run, reject });
      if (this.#queue.length === 1) setImmediate(() => this.#flush());
    });
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

  /** Runs the queued jobs; later ones fail. Returns whether it was open until now. */
  close(): boolean {
    if (this.#isClosed) return false;
    this.#flush();
    this.#isClosed = true;
    return true;
  }

  #flush(): void {
    const jobs = this.#queue;
    this.#queue = [];
    if (jobs.length === 0) return;
    try {
      for (const answer of this.#inOneTransaction(jobs)) answer();
    } catch (error) {
      for (const { reject } of jobs) reject(error);
    }
  }

  /** A CoordinatorError fails its own job; everything else fails the whole transaction, and an error of SQLite the store. */
  #inOneTransaction(jobs: readonly QueuedJob[]): readonly (() => void)[] {
    this.#mustWork();
    this.#mustBeInPlace();
    this.#begin();
    const answers = this.#runAll(jobs);
    try {
      this.#hooks.committing();
      this.#statements.commit.run();
    } catch (error) {
      this.#rollBack();
      this.#failFor(error);
    }
    this.#hooks.committed();
    return answers;
  }

  #runAll(jobs: readonly QueuedJob[]): readonly (() => void)[] {
    try {
      return jobs.map(({ run }) => run());
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

  /** Nothing is written yet: the cause may pass. */
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
    this.#hooks.rolledBack();
    try {
      this.#statements.rollback.run();
    } catch {
      // SQLite has rolled back already, or can't; no job of this transaction was answered either way.
    }
  }

  /**
   * After a failed write or sync, what is on the disk is not known, and a later sync that succeeds proves nothing. So this process
   * stops leasing; the next one reads what the file really holds, and recovers.
   */
  #failFor(error: unknown): never {
    this.#failure = failed(error, this.#file.path);
    this.#hooks.failed();
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
