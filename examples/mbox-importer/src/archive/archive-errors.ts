/** What can go wrong with an archive, in words, and what to do. */
import { ImporterError } from "../errors.js";

const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;
const FAILURE_REMEDIES: Readonly<Record<number, string>> = {
  [SQLITE_BUSY]: "Another program holds the archive: close it, then give the same command again.",
  [SQLITE_FULL]: "The disk is full: make room, then give the same command again. It goes on where it stopped.",
};
const PRIMARY_CODE_MASK = 0xff;

export function unusableArchive(path: string, why: string, cause?: unknown): ImporterError {
  const remedy = "Give --archive the path of an archive of this importer, or of a new file in a folder that exists.";
  return new ImporterError("archive_unusable", `the archive ${path} can't be used: ${why}`, remedy, { cause });
}

/** An error of SQLite with its name and a remedy; any other error as it is. */
export function sqliteFailure(path: string, error: unknown): unknown {
  const { errcode, message } = error as { errcode?: number; message?: string };
  if (errcode === undefined) return error;
  const remedy =
    FAILURE_REMEDIES[errcode & PRIMARY_CODE_MASK] ??
    "Look at the disk and the file's permissions, then give the same command again.";
  return new ImporterError("archive_failed", `the archive ${path} failed: ${message}`, remedy, {
    cause: error,
  });
}

export function repeatedCallNumber(
  callNumber: string,
  { source, number }: { readonly source: string; readonly number: number },
  holder: string | undefined,
  cause: unknown,
): ImporterError {
  return new ImporterError(
    "repeated_call_number",
    `the call number ${callNumber} was given to message ${number} of ${source}, but stands in the archive already` +
      `${holder === undefined ? "" : `, for a message of ${holder}`}. Nothing was overwritten`,
    "A number was made twice: stop all importers of this namespace and find out why before the next one starts (docs/operations.md).",
    { cause },
  );
}

export function otherStore(path: string, pinned: string, met: string): ImporterError {
  return new ImporterError(
    "other_store",
    `the archive ${path} takes its numbers from the store ${pinned}; this coordinator leases from the store ${met}`,
    "Give --coordinator the address of the archive's own store. If that store is lost, see docs/operations.md before you number on.",
  );
}

export function otherNamespace(path: string, pinned: string, met: string): ImporterError {
  return new ImporterError(
    "other_namespace",
    `the archive ${path} takes its numbers from the namespace ${pinned}, not from ${met}`,
    `Give --namespace ${pinned}, or another --archive.`,
  );
}
