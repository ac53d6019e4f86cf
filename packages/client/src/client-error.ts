/** The one error class of this package, and its errors that more than one file throws. */

import type { ClientErrorCode } from "@callnumber/protocol/api";
import { SEQUENCE_COUNT } from "@callnumber/protocol/codec";

/**
 * No call number can be made, for a reason outside the importer. The code is stable, the message is for people.
 * The call that failed returned no number; what it may have cost (a run, some sequences) is discarded, never reused.
 */
export class ClientError extends Error {
  override readonly name = "ClientError";
  /** Of `store_recovering`: why, as the coordinator reports it. */
  readonly reason: string | undefined;
  /** How long to wait at least before the next try, where the coordinator requested it. */
  readonly retryAfterMs: number | undefined;

  constructor(
    readonly code: ClientErrorCode,
    message: string,
    options: {
      readonly cause?: unknown;
      readonly reason?: string | undefined;
      readonly retryAfterMs?: number | undefined;
    } = {},
  ) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.reason = options.reason;
    this.retryAfterMs = options.retryAfterMs;
    // Node 22 aborts while it writes an error into a startup snapshot whose stack nothing has read.
    void this.stack;
  }
}

export function closedError(): ClientError {
  return new ClientError("client_closed", "this client is closed. Create a new client for more numbers");
}

export function copiedError(): ClientError {
  return new ClientError(
    "process_cloned",
    "this client came from another process, of which this one is a copy: both hold the same run. " +
      "Create the client after the start, in the process that uses it",
  );
}

/** `count`: how many numbers of the run are left. */
export function exhaustedError(count: number): ClientError {
  return new ClientError(
    "sequence_exhausted",
    `${count} of the ${SEQUENCE_COUNT} numbers of the run are left, and this client takes no other (onExhausted: "stop")`,
  );
}
