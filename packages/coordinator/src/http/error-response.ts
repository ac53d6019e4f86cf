/**
 * From an error to its response: body, status and `Retry-After`, by the tables of the protocol. Each rejection is logged once. Unauthenticated
 * clients read these bodies, so a bug is `internal_error` and nothing more; the log has the rest.
 */
import { errorResponseSchema } from "@callnumber/protocol/schemas";
import {
  ERROR_RULES,
  type ErrorCode,
  type ErrorResponse,
  HOLDER_NAME_LENGTH_MAX,
  HOST_LENGTH_MAX,
  NAMESPACE_PATTERN,
} from "@callnumber/protocol/wire";
import type { FastifyReply, FastifyRequest } from "fastify";
import { hasZodFastifySchemaValidationErrors } from "fastify-type-provider-zod";
import { CoordinatorError } from "../errors.js";
import type { RefusedCaller } from "../events/events.js";
import type { Log } from "../log.js";
import { escapeAndShorten, MESSAGE_LENGTH_MAX } from "../text.js";

/** How errors look in OpenAPI: one shape for all. */
export const errorResponses = { "4xx": errorResponseSchema, "5xx": errorResponseSchema } as const;

/** On every response: no page of another site may load it as anything, and no browser may take it for another type. */
export const SAME_ORIGIN_HEADERS = {
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
} as const;

const DEFAULT_RETRY_AFTER_MS = 1_000;

/** fastify's own codes for requests that never reach a route. */
const FASTIFY_CODES: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: "body_too_large",
  FST_ERR_CTP_INVALID_MEDIA_TYPE: "unsupported_media_type",
};

/** Logged as `debug`: scanners would fill the log with these. */
const QUIET: ReadonlySet<ErrorCode> = new Set(["not_found", "method_not_allowed"]);

const LOGGED_PATH_LENGTH_MAX = 256;

export type Rejection = ErrorResponse & { readonly code: ErrorCode };

/** What an operator needs to find the client. Never a token. */
interface LoggedClient extends RefusedCaller {
  /** As the body names it; undefined where the body was not read, or names none. */
  readonly holder: { readonly name: string; readonly host: string | undefined } | undefined;
}

export class ErrorResponses {
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Fastify's error handler: logs the error, sets status and headers, and returns the body. */
  readonly handle = async (error: unknown, request: FastifyRequest, reply: FastifyReply): Promise<ErrorResponse> =>
    sendError(reply, this.log(error, request));

  /** Logs an error, also where no response can be sent any more. Returns what a client may know of it. */
  log(error: unknown, request: FastifyRequest): Rejection {
    const rejection = printable(rejectionOf(error));
    if (rejection.code === "internal_error") {
      this.#log.error({ ...about(request), err: error }, "internal_error");
    } else this.#logRejection(rejection, request);
    return rejection;
  }

  /** Logs a rejection, sets status and headers, and returns the body. */
  reject(given: Rejection, request: FastifyRequest, reply: FastifyReply): ErrorResponse {
    const rejection = printable(given);
    this.#logRejection(rejection, request);
    return sendError(reply, rejection);
  }

  #logRejection({ code, message }: Rejection, request: FastifyRequest): void {
    const fields = { code, reason: escapeAndShorten(message), ...about(request) };
    const level = QUIET.has(code) || isCutOff(request) ? "debug" : "info";
    this.#log[level](fields, "request_rejected");
  }
}

/** Status, headers and body, by the retry rule of the code. */
export function errorResponse(answer: Rejection) {
  const { httpStatus: status, retry } = ERROR_RULES[answer.code];
  if (retry === "never") return { status, headers: {}, answer };
  const retryAfterMs = answer.retryAfterMs ?? DEFAULT_RETRY_AFTER_MS;
  return { status, headers: { "retry-after": Math.ceil(retryAfterMs / 1000) }, answer: { ...answer, retryAfterMs } };
}

function sendError(reply: FastifyReply, rejection: Rejection): ErrorResponse {
  const { status, headers, answer } = errorResponse(rejection);
  reply.code(status).headers(headers);
  return answer;
}

function rejectionOf(error: unknown): Rejection {
  if (error instanceof CoordinatorError) {
    const { code, reason, message, retryAfterMs } = error;
    return {
      code,
      message,
      ...(reason !== undefined && { reason }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    };
  }
  if (hasZodFastifySchemaValidationErrors(error)) {
    const problems = error.validation.map(({ instancePath, message }) => `${fieldName(instancePath)}: ${message}`);
    return { code: "invalid_request", message: escapeAndShorten(`${error.validationContext}: ${problems.join("; ")}`) };
  }
  const { code, statusCode, message } = (error ?? {}) as { code?: string; statusCode?: number; message?: string };
  const known = code !== undefined && Object.hasOwn(FASTIFY_CODES, code) ? FASTIFY_CODES[code] : undefined;
  if (known !== undefined) return { code: known, message: message ?? known };
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return { code: "invalid_request", message: escapeAndShorten(message ?? "the request can't be read") };
  }
  return { code: "internal_error", message: "the coordinator met a fault of its own; its log says more" };
}

function fieldName(instancePath: string): string {
  return instancePath.replace(/^\//, "").replaceAll("/", ".") || "the whole";
}

/** A message may quote the URL, which may contain characters that act on the terminal of its reader. */
function printable(rejection: Rejection): Rejection {
  return { ...rejection, message: escapeAndShorten(rejection.message, MESSAGE_LENGTH_MAX) };
}

function about(
  request: FastifyRequest,
): LoggedClient & { readonly namespace: string | undefined; readonly path: string } {
  const { ip, body, url } = request;
  const path = url.slice(0, LOGGED_PATH_LENGTH_MAX);
  const tokenId = (request.principal as typeof request.principal | null | undefined)?.tokenId ?? undefined;
  return { namespace: namespaceIn(request), path, tokenId, remoteAddress: ip, holder: holderIn(body) };
}

/** The client died in the middle of its request. */
function isCutOff({ raw }: FastifyRequest): boolean {
  return raw.destroyed && !raw.complete;
}

/** The namespace that the path names, whether or not it exists. */
function namespaceIn({ params }: FastifyRequest): string | undefined {
  const { namespace } = (params ?? {}) as { namespace?: unknown };
  return typeof namespace === "string" && NAMESPACE_PATTERN.test(namespace) ? namespace : undefined;
}

/** From any body, which may be rejected for what it contains. */
function holderIn(body: unknown): LoggedClient["holder"] {
  const { name, host } = fieldsOf(fieldsOf(body)["holder"]);
  if (typeof name !== "string") return undefined;
  return {
    name: loggedName(name, HOLDER_NAME_LENGTH_MAX),
    host: typeof host === "string" ? loggedName(host, HOST_LENGTH_MAX) : undefined,
  };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function loggedName(text: string, lengthMax: number): string {
  return escapeAndShorten(text.slice(0, lengthMax));
}
