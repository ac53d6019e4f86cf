/** The one error class of this importer. The code is stable, the message says what happened, the remedy what to do. */
import type { ClientErrorCode } from "@callnumber/protocol/wire";
import { withoutTokens } from "./without-tokens.js";

export type ImporterErrorCode =
  | "bad_usage"
  | "source_unusable"
  | "archive_unusable"
  | "archive_failed"
  | "other_namespace"
  | "repeated_call_number"
  | "process_died"
  | "token_unusable"
  | "unexpected"
  | ClientErrorCode;

export class ImporterError extends Error {
  override readonly name = "ImporterError";

  constructor(
    readonly code: ImporterErrorCode,
    message: string,
    /** One sentence for the person at the keyboard. */
    readonly remedy: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** What crosses from a process to its parent: an error keeps its code and its remedy, and loses its stack. */
export interface ErrorFacts {
  readonly code: ImporterErrorCode;
  readonly message: string;
  readonly remedy: string;
}

/** Without tokens: one may have been given where a file is named. */
export function errorFactsOf(error: unknown): ErrorFacts {
  const { code, message, remedy } = factsOf(error);
  return { code, message: withoutTokens(message), remedy: withoutTokens(remedy) };
}

function factsOf(error: unknown): ErrorFacts {
  if (error instanceof ImporterError) return { code: error.code, message: error.message, remedy: error.remedy };
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return {
    code: "unexpected",
    message,
    remedy: "This is a defect of the importer: please report it. What it has stored stands.",
  };
}

export function errorFromFacts({ code, message, remedy }: ErrorFacts): ImporterError {
  return new ImporterError(code, message, remedy);
}
