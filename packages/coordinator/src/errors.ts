/** The one error class of this package: what the outside world, not the caller's program, did wrong. */
import type { ErrorCode } from "@callnumber/protocol/wire";

/** The code is stable and listed in docs/errors.md; the message says what happened, with the value, and what to do. */
export class CoordinatorError extends Error {
  override readonly name = "CoordinatorError";
  readonly retryAfterMs: number | undefined;
  /** The record's generation, where a doubt was found: whoever settles it claims from there. */
  readonly generation: number | undefined;

  constructor(
    readonly code: ErrorCode,
    message: string,
    options: { readonly cause?: unknown; readonly retryAfterMs?: number; readonly generation?: number } = {},
  ) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.retryAfterMs = options.retryAfterMs;
    this.generation = options.generation;
  }
}
