/**
 * Leases over HTTP, by the platform's `fetch`.
 * One request for each call, never a retry: the lease buffer decides when to request again.
 */
import {
  describe,
  type ErrorResponse,
  isErrorCode,
  type Lease,
  type LeaseRequest,
  pathOf,
  type ReportRequest,
} from "@callnumber/protocol/api";
import { ClientError } from "./client-error.js";
import { boundedText, type FetchFailure, fetchFailure } from "./fetch.js";
import type { CallOptions, LeaseSource } from "./lease-source.js";

/** The part of `fetch` that is used; a test or a proxy-aware program passes its own. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export type Token = string | (() => string | Promise<string>);

/** A lease and a report have less than 1 kB, the longest error a few. */
const RESPONSE_BYTES_MAX = 65_536;

export const DEFAULT_HOST = "127.0.0.1:7300";

/** Without the characters of a token. */
const HOST_PATTERN = /^[a-z\d.:[\]-]+$/;

/** As in RFC 6750. */
const TOKEN_PATTERN = /^[\w.~+/-]+=*$/;

/** Which coordinator `httpSource` leases from, and how it sends requests. */
export interface HttpSourceOptions {
  /** URL of the coordinator, `http:` or `https:`, without credentials; a path before `/v1` is kept. */
  readonly coordinator: string;
  /** Sent as `Authorization: Bearer`, without the white space around it. A function is called before each request, so that a token can be exchanged. */
  readonly token?: Token | undefined;
  readonly fetch?: Fetch | undefined;
}

/**
 * Creates a source that leases from the coordinator at a URL.
 * @param name What errors call the URL.
 * @throws TypeError for an invalid URL or token; the token of a function is checked when it is sent.
 */
export function httpSource(
  { coordinator, token, fetch = globalThis.fetch }: HttpSourceOptions,
  name = "coordinator",
): LeaseSource {
  const base = baseOf(coordinator, name);
  if (typeof token !== "function") authorizationOf(token);

  async function post(
    path: string,
    body: LeaseRequest | ReportRequest,
    { signal }: CallOptions = {},
    isExpected: (content: unknown) => boolean = (content) => content !== undefined,
  ): Promise<unknown> {
    const headers = {
      "content-type": "application/json",
      accept: "application/json",
      // A response this short is read at once, not unpacked in another thread.
      "accept-encoding": "identity",
      ...authorizationOf(await (typeof token === "function" ? token() : token)),
    };
    const common: RequestInit = { redirect: "manual", signal: signal ?? null };
    let response: Response;
    let text: string | undefined;
    try {
      response = await fetch(base + path, { ...common, method: "POST", headers, body: JSON.stringify(body) });
      text = await boundedText(response, RESPONSE_BYTES_MAX);
    } catch (error) {
      const failure = await fetchFailure(base, error, (url) => fetch(url, { ...common, method: "HEAD" }));
      throw unreachable(base, error, failure);
    }
    const content = parseJson(text ?? "");
    if (response.ok && isExpected(content)) return content;
    throw responseError(base, response, content, text === undefined);
  }

  return {
    // The lease buffer checks every field of the response. Without this nonce it is no response of a coordinator.
    lease: (namespace, request, options) =>
      post(
        pathOf("leases", { namespace }),
        request,
        options,
        (content) => (content as Partial<Lease> | null | undefined)?.nonce === request.nonce,
      ) as Promise<Lease>,
    report: (namespace, ledgerId, request, options) =>
      post(pathOf("report", { namespace, run: ledgerId }), request, options),
  };
}

/** The platform's error would contain a token that it can't send. @throws TypeError without it. */
function authorizationOf(token: string | undefined): { authorization?: string } {
  if (token === undefined) return {};
  const trimmed = typeof token === "string" ? token.trim() : "";
  if (TOKEN_PATTERN.test(trimmed)) return { authorization: `Bearer ${trimmed}` };
  throw new TypeError(
    "token must have one or more of the characters A-Z, a-z, 0-9, -._~+/ and no white space inside. Pass the token alone",
  );
}

/** The messages show a host alone: a URL may contain a password, and with a slash in it the URL is parsed wrongly. */
function baseOf(coordinator: string, name: string): string {
  const url = URL.canParse(coordinator) ? new URL(coordinator) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    const isText = typeof coordinator === "string";
    const isHost = isText && HOST_PATTERN.test(coordinator);
    const shown = isHost || !isText ? `, not ${describe(coordinator)}` : "";
    throw new TypeError(`${name} must be an address such as http://${isHost ? coordinator : DEFAULT_HOST}${shown}`);
  }
  if (url.href.includes("@") || url.search || url.hash) {
    throw new TypeError(
      `${name} must be an address without user, password, query or fragment; give a token as \`token\``,
    );
  }
  return url.href.replace(/\/+$/, "");
}

function unreachable(base: string, cause: unknown, { code, reason }: FetchFailure): ClientError {
  const message =
    code === "coordinator_unreachable"
      ? `no coordinator answers at ${base} (${reason}); is "callnumber serve" running there?`
      : `${base} can't be used: ${reason}`;
  return new ClientError(code, message, { cause });
}

function responseError(base: string, response: Response, content: unknown, isTooLong: boolean): ClientError {
  const rejected = isErrorResponse(content) ? content : undefined;
  const retryAfterMs = rejected?.retryAfterMs ?? retryAfterHeaderMs(response);
  if (isErrorCode(rejected?.code)) {
    const { code, message, reason } = rejected;
    const { pathname } = new URL(base);
    const hint = code === "not_found" && pathname !== "/" ? `. Leave ${pathname} out of the coordinator's URL` : "";
    return new ClientError(code, message + hint, { reason, retryAfterMs });
  }
  // From a newer coordinator, a proxy in between, or another program at this URL.
  const description = rejected
    ? `${rejected.code}: ${rejected.message}`
    : `${isTooLong ? "longer than" : "not as"} a coordinator does`;
  const { status } = response;
  const message = `${base} returned status ${status}, ${description}. Check that it is the URL of a coordinator`;
  // What a proxy returns while its coordinator is down. 500 and 501 are what other programs return.
  const isTransient = status > 501 || status === 429 || status === 408;
  return new ClientError(isTransient ? "coordinator_unreachable" : "invalid_response", message, { retryAfterMs });
}

function isErrorResponse(content: unknown): content is ErrorResponse {
  const { code, reason, message, retryAfterMs } = (content ?? {}) as Partial<ErrorResponse>;
  return (
    typeof code === "string" &&
    (reason === undefined || typeof reason === "string") &&
    typeof message === "string" &&
    (retryAfterMs === undefined || (Number.isFinite(retryAfterMs) && retryAfterMs >= 0))
  );
}

function retryAfterHeaderMs(response: Response): number | undefined {
  const text = response.headers.get("retry-after");
  return text !== null && /^\d{1,6}$/.test(text) ? Number(text) * 1000 : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
