/** The one error class of this package: what the outside world, not the caller's program, did wrong. */
import type { ErrorCode } from "@callnumber/protocol/wire";
import { escapeAndShorten, MESSAGE_LENGTH_MAX } from "./text.js";

/**
 * The code is stable and listed in docs/errors.md; the message says what happened, with the value, and what to do. What a store or a server
 * said may stand in it: it goes to terminals, logs and callers, so it has one line, an end, and nothing that acts on a terminal.
 */
export class CoordinatorError extends Error {
  override readonly name = "CoordinatorError";
  readonly retryAfterMs: number | undefined;
  /** The record's generation, where a doubt was found: whoever settles it claims from there. */
  readonly generation: number | undefined;
  /** What is wrong, without what to do about it; undefined where the message has no such parts. */
  readonly fault: string | undefined;

  constructor(
    readonly code: ErrorCode,
    message: string,
    options: {
      readonly cause?: unknown;
      readonly retryAfterMs?: number;
      readonly generation?: number;
      readonly fault?: string;
    } = {},
  ) {
    super(escapeAndShorten(message, MESSAGE_LENGTH_MAX), "cause" in options ? { cause: options.cause } : undefined);
    this.retryAfterMs = options.retryAfterMs;
    this.generation = options.generation;
    this.fault = options.fault;
  }
}
