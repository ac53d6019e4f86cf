/**
 * From an error to its response: body, status and headers, by the tables of the protocol. Each rejection is logged once. Unauthenticated
 * clients read these bodies, so a bug is `internal_error` and nothing more; the log has the rest.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import {
  ERROR_RULES,
  type ErrorCode,
  type ErrorResponse,
  HOLDER_NAME_LENGTH_MAX,
  HOST_LENGTH_MAX,
  NAMESPACE_PATTERN,
} from "@callnumber/protocol/api";
import { faultsOf } from "@callnumber/protocol/schemas";
import * as z from "zod";
import { CoordinatorError } from "../errors.js";
import type { RejectedClient } from "../events/events.js";
import type { Log } from "../log.js";
import { escapeAndShorten } from "../text.js";

/** On every response: no page of another site may load it as anything, no browser may take it for another type, and none is kept. */
export const COMMON_HEADERS = {
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
} as const;

const HEADERS_OF = {
  json: { ...COMMON_HEADERS, "content-type": "application/json; charset=utf-8" },
  text: { ...COMMON_HEADERS, "content-type": "text/plain; charset=utf-8" },
} as const;

/** Sends a response; what was set as a header before is kept. */
export function send(
  response: ServerResponse,
  status: number,
  content: string,
  type: keyof typeof HEADERS_OF = "json",
) {
  response.writeHead(status, { ...HEADERS_OF[type], "content-length": Buffer.byteLength(content) }).end(content);
}

const DEFAULT_RETRY_AFTER_MS = 1_000;

/** fastify's message for this code quotes the path. */
const BAD_URL = "FST_ERR_BAD_URL";

/** Logged as `debug`: scanners would fill the log with these. */
const QUIET: ReadonlySet<ErrorCode> = new Set(["not_found", "method_not_allowed"]);

const SHOWN_PATH_LENGTH_MAX = 256;
/** The login of a URL, or a token of ours. */
const LOGIN_OR_TOKEN = /@|cn_/;
/** Another system's token is at least as long, and has a digit. */
const TOKEN_LENGTH_MIN = 24;

/**
 * Returns the path of a request as messages and the log show it: without its query, and with `***` for a segment that may be a token. A
 * client may send one in the wrong place, and the log is read by many.
 */
export function shownPath(url: string): string {
  const [path = ""] = url.split(/[?#]/, 1);
  const segments = path.split("/").map((segment) => (mayBeSecret(decoded(segment)) ? "***" : segment));
  return escapeAndShorten(segments.join("/"), SHOWN_PATH_LENGTH_MAX);
}

function mayBeSecret(segment: string): boolean {
  return LOGIN_OR_TOKEN.test(segment) || (segment.length >= TOKEN_LENGTH_MIN && /\d/.test(segment));
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

export type Rejection = ErrorResponse & { readonly code: ErrorCode };

/** What is logged of a request that is rejected. */
export interface RejectedRequest {
  readonly raw: IncomingMessage;
  /** As far as it was read. */
  readonly body?: unknown;
  /** Unset before authentication. */
  readonly principal?: { readonly tokenId: string | null } | null;
}

export type LogError = (error: unknown, request: RejectedRequest) => Rejection;

/** Makes a function that logs the error of a request, and returns what a client may know of it. */
export function errorLogger(log: Log): LogError {
  return (error, request) => {
    const rejection = rejectionOf(error);
    const { code, message } = rejection;
    if (code === "internal_error") log.error({ ...clientOf(request), err: error }, "internal_error");
    else {
      const level = QUIET.has(code) || isCutOff(request) ? "debug" : "info";
      log[level]({ code, reason: escapeAndShorten(message), ...clientOf(request) }, "request_rejected");
    }
    return rejection;
  };
}

/** Returns status, headers and body, by the retry rule of the code. */
export function errorResponse(rejection: Rejection) {
  const { httpStatus: status, retry } = ERROR_RULES[rejection.code];
  if (retry === "never") {
    const headers = rejection.code === "unauthorized" ? { "www-authenticate": "Bearer" } : {};
    return { status, headers, body: rejection };
  }
  const retryAfterMs = rejection.retryAfterMs ?? DEFAULT_RETRY_AFTER_MS;
  return { status, headers: { "retry-after": Math.ceil(retryAfterMs / 1000) }, body: { ...rejection, retryAfterMs } };
}

/** A message may quote the request, which may contain characters that act on a terminal. A CoordinatorError has escaped its own. */
function rejectionOf(error: unknown): Rejection {
  if (error instanceof CoordinatorError) {
    const { code, reason, message, retryAfterMs } = error;
    return { code, message, ...(reason && { reason }), ...(retryAfterMs !== undefined && { retryAfterMs }) };
  }
  const { code, statusCode = 500, message = "" } = (error ?? {}) as Partial<FrameworkError>;
  if (code === BAD_URL) return { code: "invalid_request", message: "the path of the request can't be decoded" };
  if (statusCode >= 400 && statusCode < 500) return { code: "invalid_request", message: escapeAndShorten(message) };
  return { code: "internal_error", message: "internal error; the log of the coordinator has the details" };
}

interface FrameworkError extends Error {
  readonly code: string;
  readonly statusCode: number;
}

/** Returns the rejection of what does not fit its schema; `part`: of the request. */
export function invalidRequest(part: string, error: z.core.$ZodError): CoordinatorError {
  const name = PARTS[part] ?? part;
  return new CoordinatorError("invalid_request", escapeAndShorten(`${name}: ${faultsOf(error, "it")}`));
}

/** As the framework calls them. */
const PARTS: Readonly<Record<string, string>> = { querystring: "query", params: "path" };

/** From any body, which may be rejected for what it contains. */
const holderSchema = z.object({ holder: z.object({ name: z.string(), host: z.string().optional().catch(undefined) }) });

const NAMESPACE_IN_PATH = /^\/v1\/namespaces\/([^/?]+)/;

/** What an operator needs to find the client, as far as it is known. Never a token. */
function clientOf({ raw, body, principal }: RejectedRequest): RejectedClient & { readonly [field: string]: unknown } {
  const { url = "", socket } = raw;
  const [, namespace = ""] = NAMESPACE_IN_PATH.exec(url) ?? [];
  const { holder } = holderSchema.safeParse(body).data ?? {};
  return {
    // Whether or not it exists.
    namespace: NAMESPACE_PATTERN.test(namespace) ? namespace : undefined,
    path: shownPath(url),
    tokenId: principal?.tokenId ?? undefined,
    remoteAddress: socket.remoteAddress,
    holder: holder && {
      name: loggedName(holder.name, HOLDER_NAME_LENGTH_MAX),
      host: holder.host === undefined ? undefined : loggedName(holder.host, HOST_LENGTH_MAX),
    },
  };
}

/** The client died in the middle of its request. */
function isCutOff({ raw }: RejectedRequest): boolean {
  return raw.destroyed && !raw.complete;
}

function loggedName(text: string, lengthMax: number): string {
  return escapeAndShorten(text.slice(0, lengthMax));
}
