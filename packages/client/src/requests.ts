/** How the lease buffer calls a source: nonces, the time limit, which errors it retries, and how long it waits before. */
import { ERROR_RULES, isErrorCode } from "@callnumber/protocol/api";
import { ClientError } from "./client-error.js";
import type { CallOptions } from "./lease-source.js";
import { limitTime } from "./node-process.js";
import type { Settings } from "./options.js";

/** 96 random bits in 16 characters: the ledger stores one for each lease, so it is short. */
export function newNonce(): string {
  return Buffer.from(globalThis.crypto.getRandomValues(new Uint8Array(12))).toString("base64url");
}

/** The time limit doubles as often as this. */
const DOUBLINGS_MAX = 3;

/**
 * Returns the time limit of an attempt (1, 2, …) to lease, ms. It grows, because a coordinator with a queue longer than the limit would lease
 * to clients that have left, and serve none.
 */
export function requestTimeout(
  { requestTimeoutMs, waitTimeoutMs }: Pick<Settings, "requestTimeoutMs" | "waitTimeoutMs">,
  attempt: number,
): number {
  const grownMs = requestTimeoutMs * 2 ** Math.min(attempt - 1, DOUBLINGS_MAX);
  return Math.min(grownMs, Math.max(requestTimeoutMs, waitTimeoutMs));
}

/** Sends one request with a time limit, also for a source that ignores the signal. */
export async function withTimeout<T>(
  send: (options: CallOptions) => Promise<T>,
  timeoutMs: number,
  controller = new AbortController(),
): Promise<T> {
  const { signal } = controller;
  const message = `the coordinator did not answer within ${timeoutMs / 1000} s`;
  const callOff = limitTime(() => controller.abort(new ClientError("coordinator_unreachable", message)), timeoutMs);
  try {
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    // In a microtask of its own: foreign code never runs in the middle of a step of the buffer.
    return await Promise.race([Promise.resolve().then(() => send({ signal })), aborted]);
  } finally {
    callOff();
  }
}

export function isRetryable({ code }: ClientError): boolean {
  return code === "coordinator_unreachable" || (isErrorCode(code) && ERROR_RULES[code].retry === "later");
}

/** Converts the error of a source, which has a `code` of the protocol's list and, if known, `retryAfterMs`. */
export function asClientError(error: unknown): ClientError {
  if (error instanceof ClientError) return error;
  const { code, reason, message, retryAfterMs } = (error ?? {}) as {
    code?: unknown;
    reason?: unknown;
    message?: unknown;
    retryAfterMs?: unknown;
  };
  return new ClientError(isErrorCode(code) ? code : "internal_error", String(message ?? error), {
    cause: error,
    reason: typeof reason === "string" ? reason : undefined,
    retryAfterMs: typeof retryAfterMs === "number" ? retryAfterMs : undefined,
  });
}

const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 10_000;
/** Clients that got the same Retry-After in the same instant come back spread over so long. */
const SPREAD_MS = 1_000;
/** A longer Retry-After is cut to this: an importer must notice soon that its coordinator is back. */
const LONGEST_RETRY_AFTER_MS = 60_000;

/**
 * Returns a random delay in whole milliseconds, on top of what the coordinator requested, so that a thousand importers do not come back in the
 * same instant (full jitter). Its bound doubles with each failed attempt (1, 2, …), and is at least as long as the requested delay, up to a
 * second.
 */
export function retryDelayMs(attempt: number, retryAfterMs = 0): number {
  const requestedMs = Math.min(retryAfterMs, LONGEST_RETRY_AFTER_MS);
  const bound = Math.min(
    LONGEST_DELAY_MS,
    Math.max(FIRST_DELAY_MS * 2 ** (attempt - 1), Math.min(requestedMs, SPREAD_MS)),
  );
  return Math.ceil(requestedMs + Math.random() * bound);
}
