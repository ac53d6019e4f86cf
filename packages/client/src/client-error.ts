/** The one error class of this package. */
import type { ClientErrorCode } from "@callnumber/protocol/http-api";

/**
 * Something outside the importer stands in the way of a call number. The code is stable, the message is for people.
 * No number was handed out by the call that failed; what it may have cost (a run, some sequences) is burnt, never reused.
 */
export class ClientError extends Error {
  override readonly name = "ClientError";
  /** How long to wait at least before the same again, where the coordinator said so. */
  readonly retryAfterMs: number | undefined;

  constructor(
    readonly code: ClientErrorCode,
    message: string,
    options: { readonly cause?: unknown; readonly retryAfterMs?: number | undefined } = {},
  ) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.retryAfterMs = options.retryAfterMs;
  }
}
