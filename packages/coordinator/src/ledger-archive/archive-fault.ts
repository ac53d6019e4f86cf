/** The one way in which the archive of a ledger fails: what it holds can't be told, and so nothing is told of it. Pure. */
import { CoordinatorError } from "../errors.js";

/** `what` happened, and what to do. */
export function archiveUnavailable(what: string, cause?: unknown): CoordinatorError {
  return new CoordinatorError("ledger_archive_unavailable", what, cause === undefined ? {} : { cause });
}

export function damagedFile(name: string, what: string, cause?: unknown): CoordinatorError {
  return archiveUnavailable(`the archive file ${name} is damaged: ${what}. Put it back from a backup`, cause);
}
