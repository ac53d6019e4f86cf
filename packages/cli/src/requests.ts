/** Requests to a coordinator over HTTP, with the token of the command. Responses are checked by the coordinator's own schemas. */
import { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { boundedText, fetchFailure } from "@callnumber/client/internal";
import { isLoopback, readPrivateFile } from "@callnumber/coordinator/internal/machine";
import { escapeAndShorten, MESSAGE_LENGTH_MAX } from "@callnumber/coordinator/internal/text";
import { ERROR_RULES } from "@callnumber/protocol/api";
import { errorResponseSchema } from "@callnumber/protocol/schemas";
import type * as z from "zod";
import { invocation } from "./invocation.js";
import type { CoordinatorOptions } from "./options.js";

const TIMEOUT_MS = 10_000;
/** How long a request may wait in all while the coordinator is overloaded. */
const OVERLOAD_WAIT_MAX_MS = 15_000;
/**
 * The largest pages: 500 leases of at most 3,400 bytes are 1.7 MB. The list of namespaces has no such limit: this holds four
 * thousand.
 */
const RESPONSE_BYTES_MAX = 16 * 1024 * 1024;
/** Of an error: it is printed. */
const ERROR_BYTES_MAX = 65_536;
/** What RFC 6750 allows in a token. */
const BEARER_PATTERN = /^[\w.~+/-]+=*$/;

/** A request without a usable response. Code and message may come from another machine. */
export class RequestError extends Error {
  override readonly name = "RequestError";

  readonly code: string;
  /** How long to wait at least before the next try; undefined where none helps. */
  readonly retryAfterMs: number | undefined;

  constructor(
    code: string,
    message: string,
    options: ErrorOptions & { readonly retryAfterMs?: number | undefined } = {},
  ) {
    super(escapeAndShorten(message, MESSAGE_LENGTH_MAX), options);
    this.code = escapeAndShorten(code);
    this.retryAfterMs = options.retryAfterMs;
  }
}

interface Received {
  readonly status: number;
  /** Of JSON, or a stream; undefined for anything else. */
  readonly body: unknown;
}

/**
 * Sends a GET request, or with a body POST. Waits some seconds while the coordinator is overloaded, which has done nothing then.
 * @throws RequestError with the coordinator's own code, or `coordinator_unreachable`, `invalid_response`, `token_invalid`.
 */
export async function requestJson<T>(
  options: CoordinatorOptions,
  path: string,
  schema: z.ZodType<T>,
  body?: object,
): Promise<T> {
  for (let waitedMs = 0; ; ) {
    const received = await send(options, path, { body });
    if (received.status === 200) {
      const result = schema.safeParse(received.body);
      if (result.success) return result.data;
    }
    const pauseMs = overloadPauseMs(received);
    if (pauseMs === undefined || waitedMs + pauseMs > OVERLOAD_WAIT_MAX_MS) throw errorIn(options, received);
    await delay(pauseMs);
    waitedMs += pauseMs;
  }
}

/**
 * Returns a response of any length, as it comes, until `signal` ends it. Reading it fails as the connection does.
 * @throws RequestError as `requestJson`, before the first byte.
 */
export async function requestStream(
  options: CoordinatorOptions,
  path: string,
  signal?: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const received = await send(options, path, { asStream: true, signal });
  if (received.status !== 200) throw errorIn(options, received);
  return received.body as AsyncIterable<Uint8Array>;
}

interface SendOptions {
  readonly asStream?: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly body?: object | undefined;
}

/** Reads no more than a coordinator can have to send, whatever responds; a stream may have any length and take any time. */
async function send(
  options: CoordinatorOptions,
  path: string,
  { asStream = false, signal: stop, body }: SendOptions = {},
): Promise<Received> {
  const base = baseOf(options);
  const posted = body && { method: "POST", body: JSON.stringify(body) };
  const headers = { ...authorizationOf(options), ...(posted && { "content-type": "application/json" }) };
  const tooLate = new AbortController();
  const timer = setTimeout(() => tooLate.abort(new DOMException("no response", "TimeoutError")), TIMEOUT_MS);
  try {
    const signal = stop === undefined ? tooLate.signal : AbortSignal.any([tooLate.signal, stop]);
    const response = await fetch(base + path, { ...posted, headers, redirect: "manual", signal });
    const { status } = response;
    if (asStream && status === 200) return { status, body: response.body ?? Readable.from([]) };
    return { status, body: jsonIn(await boundedText(response, status === 200 ? RESPONSE_BYTES_MAX : ERROR_BYTES_MAX)) };
  } catch (error) {
    throw await unreachable(base, error);
  } finally {
    clearTimeout(timer);
  }
}

function jsonIn(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The message leaves the URL out: it may contain a password. */
function baseOf({ coordinator }: CoordinatorOptions): string {
  const { href, search, hash } = new URL(coordinator);
  if (href.includes("@") || search || hash) {
    throw new TypeError("--coordinator must be a URL without user, password, query or fragment");
  }
  return coordinator.replace(/\/+$/, "");
}

function authorizationOf(options: CoordinatorOptions): Readonly<Record<string, string>> {
  const token = bearerToken(options);
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/**
 * Returns the token, from the file or else CALLNUMBER_TOKEN; undefined without either. Never from the command line, which every user of
 * the machine can read. The file is read each time, so that a token can be replaced under a running command. Warns on standard error
 * of a token that leaves the machine in plain text.
 * @throws RequestError `token_invalid`, without the text: it is no token, can't be read, or others may read it.
 */
function bearerToken({ coordinator, tokenFile }: CoordinatorOptions): string | undefined {
  const token = tokenFile === undefined ? invocation().io.env["CALLNUMBER_TOKEN"] : tokenIn(tokenFile);
  if (token === undefined) return undefined;
  if (!BEARER_PATTERN.test(token)) {
    const where = tokenFile === undefined ? "CALLNUMBER_TOKEN" : `the token file ${tokenFile}`;
    const fault = token === "" ? "holds no token" : "holds characters that no token has";
    throw new RequestError(
      "token_invalid",
      `${where} ${fault}; it must hold what "callnumber token create" printed, alone`,
    );
  }
  warnOfPlainToken(coordinator);
  return token;
}

function tokenIn(file: string): string {
  try {
    return readPrivateFile(file, "the token file").trim();
  } catch (error) {
    throw new RequestError("token_invalid", (error as Error).message, { cause: error });
  }
}

function warnOfPlainToken(coordinator: string): void {
  const command = invocation();
  const { protocol, hostname, host } = new URL(coordinator);
  if (command.hasWarnedOfPlainToken || protocol !== "http:" || isLoopback(hostname.replace(/^\[|\]$/g, ""))) return;
  command.hasWarnedOfPlainToken = true;
  command.io.stderr.write(
    `callnumber: the token goes to http://${host} in plain text. Use https://, or a tunnel that ends on this machine\n`,
  );
}

/** With jitter: clients that were rejected together do not come back together. */
function overloadPauseMs({ status, body }: Received): number | undefined {
  const rejected = errorResponseSchema.safeParse(body).data;
  if (status !== ERROR_RULES.overloaded.httpStatus || rejected?.code !== "overloaded") return undefined;
  return (rejected.retryAfterMs ?? 0) * (1 + Math.random());
}

function errorIn(options: CoordinatorOptions, { status, body }: Received): RequestError {
  const rejected = errorResponseSchema.safeParse(body).data;
  if (status !== 200 && rejected !== undefined) {
    const { code, message, retryAfterMs } = rejected;
    return new RequestError(code, message, { retryAfterMs });
  }
  return new RequestError(
    "invalid_response",
    `${baseOf(options)} answered with status ${status}, but not as a coordinator does; is that its URL?`,
  );
}

async function unreachable(base: string, error: unknown): Promise<RequestError> {
  const probe = (url: string) =>
    fetch(url, { method: "HEAD", redirect: "manual", signal: AbortSignal.timeout(TIMEOUT_MS) });
  const { code, reason } = await fetchFailure(base, error, probe);
  const message =
    code === "coordinator_unreachable"
      ? `no coordinator answers at ${base} (${reason}). Start it again with the options that it had, or name another with --coordinator`
      : `${base} can't be used: ${reason}`;
  return new RequestError(code, message, {
    cause: error,
    retryAfterMs: code === "coordinator_unreachable" ? 0 : undefined,
  });
}
