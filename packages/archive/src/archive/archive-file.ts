/**
 * Which file an archive is. SQLite keeps its newest rows in `-wal` next to it, by name: so an import that goes on, or only closes, after
 * one of the two was exchanged writes into a file that is lost, or destroys the one that is there now.
 */
import { statSync } from "node:fs";
import type { DatabaseSyncInstance as Database } from "@photostructure/sqlite";
import { ArchiveError } from "../errors.js";

/** The file that a path leads to; undefined if there is none. Of two files it differs, also of a file and its copy. */
export function fileAt(path: string): string | undefined {
  const file = statSync(path, { bigint: true, throwIfNoEntry: false });
  return file && `${file.dev} ${file.ino}`;
}

/** SQLite would keep two logs of one file, by its two names, and the rows of one of them would be lost. @throws Error */
export function assertOneName(path: string): void {
  const links = statSync(path, { throwIfNoEntry: false })?.nlink ?? 1;
  if (links > 1) throw new Error(`the file has ${links} names (hard links): leave one, or copy it`);
}

export function replaced(path: string): ArchiveError {
  const failure = `The archive ${path}, or its -wal file, was removed or replaced during the import. Nothing more was stored`;
  const action =
    "Put back the same file and leave its -wal file. Or remove -wal and -shm, and put back a copy. " +
    "Then run the same command again, with the file of numbers.";
  return new ArchiveError("archive_replaced", `${failure}.\n${action}`);
}

/** The files of an archive that is open. */
export class OpenFiles {
  readonly main: string | undefined;
  readonly #log: string | undefined;
  readonly #path: string;

  constructor(path: string, database: Database) {
    this.#path = path;
    // The first read makes the log.
    database.prepare("select count(*) from facts").get();
    [this.main, this.#log] = this.#there();
  }

  /** @throws ArchiveError `archive_replaced`. */
  assertInPlace(): void {
    const [main, log] = this.#there();
    if (main !== this.main || log !== this.#log) throw replaced(this.#path);
  }

  /**
   * Closes the archive, unless it is not in its place any more: to close it could harm what is there now, so it is left to the end of the
   * process. Its newest rows go into its own file, wherever that is, so that its log is empty, and can't be taken for that of a copy.
   */
  close(database: Database): void {
    const [main, log] = this.#there();
    if (log !== this.#log) return;
    if (main === this.main) database.close();
    else database.prepare("pragma wal_checkpoint(truncate)").get();
  }

  #there(): [string | undefined, string | undefined] {
    return [fileAt(this.#path), fileAt(`${this.#path}-wal`)];
  }
}
