/** The one error class of this importer: a stable code, and a message with what failed, why, and what to do. */
import { ClientError } from "@callnumber/client";
import { type ClientErrorCode, STOPPING_CODES } from "@callnumber/protocol/api";

export type ArchiveErrorCode =
  | "bad_usage"
  | "source_unusable"
  | "archive_unusable"
  | "archive_failed"
  | "archive_replaced"
  | "archive_damaged"
  | "address_unusable"
  | "message_missing"
  | "other_namespace"
  | "repeated_call_number"
  | "worker_died"
  | "token_invalid"
  | "numbers_unusable"
  | "number_never_leased"
  | "unexpected"
  | ClientErrorCode;

export class ArchiveError extends Error {
  override readonly name = "ArchiveError";

  constructor(
    readonly code: ArchiveErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** What is left of an error when it crosses from a worker to its parent, or becomes part of the summary. */
export interface ErrorDetails {
  readonly code: ArchiveErrorCode;
  readonly message: string;
}

/** After these, numbers may be repeated, or are another store's, or messages are gone: a person must act before an import goes on. */
export const PERSON_NEEDED: ReadonlySet<ArchiveErrorCode> = new Set([
  "archive_replaced",
  "archive_damaged",
  "repeated_call_number",
  "other_namespace",
  ...STOPPING_CODES,
]);

const RETRY = "then run the same command again. It continues where it stopped.";

/** What to do about an error of the client. docs/reference/errors.md describes the other codes. */
const CLIENT_ERROR_ACTIONS: Partial<Record<ClientErrorCode, string>> = {
  coordinator_unreachable: `Start the coordinator (callnumber serve) or pass its URL with --coordinator, ${RETRY}`,
  wait_timeout: `Check the coordinator (callnumber status) or pass a longer --wait, ${RETRY}`,
  store_mismatch:
    "The archive is pinned to the store of its first number. Pass the URL of that store's coordinator with --coordinator." +
    " If the store is lost, run callnumber explain namespace_lost first.",
  namespace_not_found: `Create the namespace (callnumber init) or pass another one with --namespace, ${RETRY}`,
  unauthorized: `Pass a token that the coordinator knows with --token-file, ${RETRY}`,
  forbidden: `Pass a token for leasing in this namespace with --token-file, or another --namespace, ${RETRY}`,
  store_unavailable: `Check the coordinator's store, ${RETRY}`,
  shutting_down: `Start the coordinator again, ${RETRY}`,
};

/** Of SQLite, in every language. An iteration fails without the number of the error. */
const SQLITE_CORRUPT = "database disk image is malformed";

/** What to do about an error of SQLite that says so of its file; undefined: it is another error. */
export function damage(error: unknown): ErrorDetails | undefined {
  const { code, message } = error as { code?: string; message?: string };
  if (code !== "ERR_SQLITE_ERROR" || message !== SQLITE_CORRUPT) return undefined;
  const action =
    "Stop import and reader, remove its -wal and -shm files, and put back a copy. Then import the mail again with --numbers.";
  return { code: "archive_damaged", message: `The archive is damaged: ${message}.\n${action}` };
}

/** Returns code and message of any error. What is neither ours nor the client's is a bug, and keeps its stack. */
export function errorDetails(error: unknown): ErrorDetails {
  if (error instanceof ArchiveError) return { code: error.code, message: error.message };
  if (error instanceof ClientError) {
    const action =
      CLIENT_ERROR_ACTIONS[error.code] ?? `For cause and fix run callnumber explain ${error.code}, ${RETRY}`;
    return { code: error.code, message: `${error.message}\n${action}` };
  }
  const damaged = damage(error ?? {});
  if (damaged !== undefined) return damaged;
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: "unexpected", message: `${text}\nThis is a bug of the importer: please report it.` };
}
