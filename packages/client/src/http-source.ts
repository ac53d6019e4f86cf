/**
 * Leases over HTTP, by the platform's `fetch`.
 * One request for each call, never a repeat: when to ask again is the lease buffer's decision.
 */
import { type ErrorAnswer, isErrorCode, type Lease, pathOf } from "@callnumber/protocol/wire";
import { boundedText } from "./bounded-text.js";
import { ClientError } from "./client-error.js";
import type { CallOptions, LeaseSource } from "./lease-source.js";
import { unreachableReason } from "./unreachable-reason.js";

/** The part of `fetch` that is used; a test or a proxy-aware program passes its own. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export type Token = string | (() => string);

/** A lease and a report have less than 1 kB, and the longest refusal some. */
const ANSWER_BYTES_MAX = 65_536;

/** What RFC 6750 lets a token have. */
const TOKEN_PATTERN = /^[\w.~+/-]+=*$/;

export interface HttpSourceOptions {
  /** Address of the coordinator, `http:` or `https:`, without credentials; a path in front of `/v1` is kept. */
  readonly coordinator: string;
  /** Sent as `Authorization: Bearer`. A function is asked before each request, so that a token can be exchanged. */
  readonly token?: Token | undefined;
  readonly fetch?: Fetch | undefined;
}

/**
 * A source that asks the coordinator at an address.
 * @throws TypeError when the address is none, or the token; a function's token is checked when it is sent.
 */
export function httpSource({ coordinator, token, fetch = globalThis.fetch }: HttpSourceOptions): LeaseSource {
  const base = baseOf(coordinator);
  if (typeof token !== "function") authorizationOf(token);

  async function post(path: string, body: unknown, { signal }: CallOptions = {}): Promise<unknown> {
    const headers = {
      "content-type": "application/json",
      accept: "application/json",
      ...authorizationOf(typeof token === "function" ? token() : token),
    };
    const init: RequestInit = { method: "POST", headers, body: JSON.stringify(body), redirect: "error" };
    if (signal) init.signal = signal;
    let response: Response;
    let text: string | undefined;
    try {
      response = await fetch(base + path, init);
      text = await boundedText(response, ANSWER_BYTES_MAX);
    } catch (error) {
      throw unreachable(base, error);
    }
    const answer = parseJson(text ?? "");
    if (response.ok && answer !== undefined) return answer;
    throw refusal(base, response, answer, text === undefined);
  }

  return {
    // The lease buffer checks every field of the answer before it mints from it.
    lease: (namespace, request, options) => post(pathOf("leases", { namespace }), request, options) as Promise<Lease>,
    report: (namespace, ledgerId, request, options) =>
      post(pathOf("report", { namespace, run: ledgerId }), request, options),
  };
}

/** The platform would show a token that it can't send. @throws TypeError that does not. */
function authorizationOf(token: string | undefined): { authorization?: string } {
  if (token === undefined) return {};
  if (typeof token === "string" && TOKEN_PATTERN.test(token)) return { authorization: `Bearer ${token}` };
  throw new TypeError("token must have one or more of the characters A-Z, a-z, 0-9, -._~+/ and nothing else");
}

/** The messages leave the address out: it may hold a password, which ends the host too early where it has a slash. */
function baseOf(coordinator: string): string {
  const url = URL.canParse(coordinator) ? new URL(coordinator) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new TypeError("coordinator must be an address such as http://127.0.0.1:7300");
  }
  if (url.href.includes("@") || url.search || url.hash) {
    throw new TypeError(
      "coordinator must be an address without user, password, query or fragment; give a token as `token`",
    );
  }
  return url.href.replace(/\/+$/, "");
}

function unreachable(base: string, error: unknown): ClientError {
  if (error instanceof Error && error.name === "TimeoutError") {
    return new ClientError("coordinator_unreachable", `the coordinator at ${base} did not answer in time`, {
      cause: error,
    });
  }
  const reason = unreachableReason(base, error);
  const message = `no coordinator answers at ${base} (${reason}); is "callnumber serve" running there?`;
  return new ClientError("coordinator_unreachable", message, { cause: error });
}

function refusal(base: string, response: Response, answer: unknown, isTooLong: boolean): ClientError {
  const retryAfterMs = (isErrorAnswer(answer) ? answer.retryAfterMs : undefined) ?? retryAfterHeaderMs(response);
  if (isErrorAnswer(answer) && isErrorCode(answer.code))
    return new ClientError(answer.code, answer.message, { retryAfterMs });
  // Not an answer that this client knows: a newer coordinator, a proxy in between, or another program at this address.
  const said = isErrorAnswer(answer)
    ? `${answer.code}: ${answer.message}`
    : `${isTooLong ? "longer than" : "not as"} a coordinator does`;
  const message = `${base} answered with status ${response.status}, ${said}; is that the address of a coordinator?`;
  const passing = response.status >= 500 || response.status === 429 || response.status === 408;
  return new ClientError(passing ? "coordinator_unreachable" : "answer_not_understood", message, { retryAfterMs });
}

function isErrorAnswer(answer: unknown): answer is ErrorAnswer {
  const { code, message, retryAfterMs } = (answer ?? {}) as Partial<ErrorAnswer>;
  return (
    typeof code === "string" &&
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
