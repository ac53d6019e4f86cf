/** Questions to a coordinator over HTTP. The answers are checked by the same schemas that the coordinator answers by. */
import { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { fetchFailure } from "@callnumber/client";
import { errorAnswerSchema } from "@callnumber/protocol/schemas";
import { ERROR_RULES } from "@callnumber/protocol/wire";
import type { z } from "zod";
import { AskError } from "./ask-error.js";
import { bearerToken } from "./bearer-token.js";
import { type Answer, boundedAnswer } from "./bounded-answer.js";
import { warnOfPlainToken } from "./plain-token.js";

const TIMEOUT_MS = 10_000;
/** How long a question may wait for a place in all. */
const PATIENCE_MS = 15_000;

/** Whom a command asks. */
export interface Asked {
  readonly coordinator: string;
  /** Where the token stands that it bears; undefined for the one of the environment, where there is one. */
  readonly tokenFile?: string | undefined;
}

type Question = RequestInit & { readonly headers?: Readonly<Record<string, string>> };

/**
 * Waits out that the coordinator is asked too much, for some seconds: nothing was begun then, so asking again does nothing twice.
 * `request`: what is not a plain GET. @throws AskError with the coordinator's own code, or `coordinator_unreachable`, `answer_not_understood` or `token_unusable`.
 */
export async function askCoordinator<T>(
  asked: Asked,
  path: string,
  schema: z.ZodType<T>,
  request: Question = {},
): Promise<T> {
  const base = baseOf(asked);
  const headers = { ...request.headers, ...authorizationOf(asked) };
  for (let waitedMs = 0; ; ) {
    const answer = await send(base, path, { ...request, headers });
    if (answer.status === 200 && !answer.isTooMuch) {
      const understood = schema.safeParse(answer.body);
      if (understood.success) return understood.data;
    }
    const pauseMs = pauseIn(answer);
    if (pauseMs === undefined || waitedMs + pauseMs > PATIENCE_MS) throw refusalIn(base, answer);
    await delay(pauseMs);
    waitedMs += pauseMs;
  }
}

/**
 * An answer of any length, as it comes. Its own errors are those of a connection that breaks.
 * @throws AskError as `askCoordinator`, before the first byte.
 */
export async function streamFromCoordinator(asked: Asked, path: string): Promise<AsyncIterable<Uint8Array>> {
  const base = baseOf(asked);
  const headers = authorizationOf(asked);
  const tooLate = new AbortController();
  const timer = setTimeout(() => tooLate.abort(new DOMException("no answer", "TimeoutError")), TIMEOUT_MS);
  let refusal: Answer;
  try {
    const response = await fetch(base + path, { headers, redirect: "manual", signal: tooLate.signal });
    // The answer itself may take as long as it takes; a refusal has the time of any other.
    if (response.status === 200) return response.body ?? Readable.from([]);
    refusal = await boundedAnswer(response);
  } catch (error) {
    throw await unreachable(base, error);
  } finally {
    clearTimeout(timer);
  }
  throw refusalIn(base, refusal);
}

/** The message leaves the address out: it may hold a password, which ends the host too early where it has a slash. */
function baseOf({ coordinator }: Asked): string {
  const { href, search, hash } = new URL(coordinator);
  if (href.includes("@") || search || hash) {
    throw new TypeError("--coordinator must be an address without user, password, query or fragment");
  }
  return coordinator.replace(/\/+$/, "");
}

function authorizationOf({ coordinator, tokenFile }: Asked): Readonly<Record<string, string>> {
  const token = bearerToken(tokenFile);
  if (token === undefined) return {};
  warnOfPlainToken(coordinator);
  return { authorization: `Bearer ${token}` };
}

async function send(base: string, path: string, request: RequestInit): Promise<Answer> {
  try {
    const init: RequestInit = { ...request, redirect: "manual", signal: AbortSignal.timeout(TIMEOUT_MS) };
    return await boundedAnswer(await fetch(base + path, init));
  } catch (error) {
    throw await unreachable(base, error);
  }
}

/** At random up to as long again: those who were turned away together do not come back together. */
function pauseIn({ status, body }: Answer): number | undefined {
  const refusal = errorAnswerSchema.safeParse(body);
  if (status !== ERROR_RULES.overloaded.httpStatus || !refusal.success || refusal.data.code !== "overloaded")
    return undefined;
  return (refusal.data.retryAfterMs ?? 0) * (1 + Math.random());
}

function refusalIn(base: string, { status, body, isTooMuch }: Answer): AskError {
  const refusal = errorAnswerSchema.safeParse(body);
  if (status !== 200 && refusal.success) return new AskError(refusal.data.code, refusal.data.message);
  return new AskError(
    "answer_not_understood",
    `${base} answered with status ${status}, but ${isTooMuch ? "with more than a coordinator has to say" : "not as a coordinator does"}; is that its address?`,
  );
}

async function unreachable(base: string, error: unknown): Promise<AskError> {
  const probe = (url: string) =>
    fetch(url, { method: "HEAD", redirect: "manual", signal: AbortSignal.timeout(TIMEOUT_MS) });
  const { code, reason } = await fetchFailure(base, error, probe);
  const message =
    code === "coordinator_unreachable"
      ? `no coordinator answers at ${base} (${reason}). Start one with "callnumber serve", or name another with --coordinator`
      : `${base} can't be used: ${reason}`;
  return new AskError(code, message, { cause: error });
}
