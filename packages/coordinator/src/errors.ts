/** The one error class of this package, for what is not the calling program's mistake. */
import type { ErrorCode, RecoveryReason } from "@callnumber/protocol/api";
import { escapeAndShorten, MESSAGE_LENGTH_MAX } from "./text.js";

/**
 * The code is stable and listed in docs/reference/errors.md; the message has what happened, with the value, and what to do. It may include text of a store
 * or a server, and goes to terminals, logs and clients: it is escaped, in one line, and bounded.
 */
export class CoordinatorError extends Error {
  override readonly name = "CoordinatorError";
  /** Of `store_recovering`. */
  readonly reason: RecoveryReason | undefined;
  readonly retryAfterMs: number | undefined;
  /** The record's generation, where the store may have rolled back: a recovery claims from there. */
  readonly generation: number | undefined;
  /** What is wrong, without what to do; undefined where the message has no such parts. */
  readonly fault: string | undefined;
  /** Of `namespace_moved`, and of a new store that is missing: where to, as in the seal. */
  readonly movedTo: string | undefined;

  constructor(
    readonly code: ErrorCode,
    message: string,
    options: {
      readonly cause?: unknown;
      readonly reason?: RecoveryReason | undefined;
      readonly retryAfterMs?: number;
      readonly generation?: number;
      readonly fault?: string;
      readonly movedTo?: string;
    } = {},
  ) {
    super(escapeAndShorten(message, MESSAGE_LENGTH_MAX), "cause" in options ? { cause: options.cause } : undefined);
    this.reason = options.reason;
    this.retryAfterMs = options.retryAfterMs;
    this.generation = options.generation;
    this.fault = options.fault;
    this.movedTo = options.movedTo;
  }
}

/** Returns what a message says to do: the command that it names, else what follows its first sentence; undefined for neither. */
export function remedyIn(message: string): string | undefined {
  const [, ...sentences] = message.split(/(?<=\.) (?=[A-Z])/);
  const advice = sentences.filter((sentence) => !NO_ADVICE.test(sentence)).join(" ");
  return commandIn(message) ?? (advice === "" ? undefined : advice);
}

/** Returns the command that a message names, with the options that it needs. */
export function commandIn(message: string): string | undefined {
  return /`callnumber .*?`/.exec(message)?.[0];
}

/** What did not happen. */
const NO_ADVICE = /^(Nothing (is|was) \w+( or \w+)?|Its runs were discarded)\.$/;
