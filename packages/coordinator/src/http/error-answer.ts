/**
 * From anything thrown to the answer: body, status and `Retry-After`, by the tables of the protocol; and each refusal is told once.
 * Strangers read these bodies: a fault of our own is named `internal_error` and nothing more; the log has the rest.
 */
import { ERROR_RULES, type ErrorAnswer, type ErrorCode, NAMESPACE_PATTERN } from "@callnumber/protocol/wire";
import type { FastifyReply, FastifyRequest } from "fastify";
import { hasZodFastifySchemaValidationErrors } from "fastify-type-provider-zod";
import { CoordinatorError } from "../errors.js";
import { withinTrace } from "../events/trace-context.js";
import type { Log } from "../log.js";
import { escapeAndShorten, MESSAGE_LENGTH_MAX, withoutTokens } from "../text.js";
import { refusedCaller } from "./refused-caller.js";

const DEFAULT_RETRY_AFTER_MS = 1_000;

/** fastify's own codes for requests that never reach a route. */
const FASTIFY_CODES: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: "body_too_large",
  FST_ERR_CTP_INVALID_MEDIA_TYPE: "unsupported_media_type",
};

/** Whatever a stranger tries would fill the log with these. */
const QUIET: ReadonlySet<ErrorCode> = new Set(["not_found", "method_not_allowed"]);

const PATH_LENGTH_TOLD = 256;

type Refusal = ErrorAnswer & { readonly code: ErrorCode };

export interface Refusals {
  /** The answer to a request that came to nothing because of what was thrown. */
  readonly answerError: (error: unknown, request: FastifyRequest, reply: FastifyReply) => Promise<ErrorAnswer>;
  /** Tells the log of what was thrown where no answer can be given any more. Answers what it comes to. */
  readonly tell: (error: unknown, request: FastifyRequest) => Refusal;
  /** Sets status and headers, tells the log, and answers the body. */
  readonly refuse: (answer: Refusal, request: FastifyRequest, reply: FastifyReply) => ErrorAnswer;
}

export function refusalsTold(log: Log): Refusals {
  const tellRefusal = ({ code, message: reason }: Refusal, request: FastifyRequest) => {
    const about = { code, reason: escapeAndShorten(reason), ...aboutOf(request) };
    const level = QUIET.has(code) || isCutOff(request) ? "debug" : "info";
    withinTrace(request.headers, () => log[level](about, "refusal"));
  };
  const tell: Refusals["tell"] = (error, request) => {
    const answer = clean(errorAnswerOf(error));
    if (answer.code !== "internal_error") {
      tellRefusal(answer, request);
      return answer;
    }
    withinTrace(request.headers, () => log.error({ ...aboutOf(request), err: error }, "internal_error"));
    return answer;
  };
  return {
    tell,
    refuse(given, request, reply) {
      const answer = clean(given);
      tellRefusal(answer, request);
      return sendError(reply, answer);
    },
    answerError: async (error, request, reply) => sendError(reply, tell(error, request)),
  };
}

/** What is said of an address may quote it: a caller may have put a token there, or what acts on the terminal of who reads it. */
function clean(answer: Refusal): Refusal {
  return { ...answer, message: escapeAndShorten(withoutTokens(answer.message), MESSAGE_LENGTH_MAX) };
}

/** What was asked, and by whom. */
function aboutOf(request: FastifyRequest) {
  return { namespace: namespaceIn(request), path: pathIn(request), ...refusedCaller(request) };
}

/** The caller died in the middle of its request. */
function isCutOff({ raw }: FastifyRequest): boolean {
  return raw.destroyed && !raw.complete;
}

/** As much of it as a request of ours can have: strangers' addresses would fill log and streams. */
function pathIn({ url }: FastifyRequest): string {
  return withoutTokens(url).slice(0, PATH_LENGTH_TOLD);
}

/** What the path names, whether or not there is such a namespace; undefined when it names none. */
function namespaceIn({ params }: FastifyRequest): string | undefined {
  const { namespace } = (params ?? {}) as { namespace?: unknown };
  return typeof namespace === "string" && NAMESPACE_PATTERN.test(namespace) ? withoutTokens(namespace) : undefined;
}

function sendError(reply: FastifyReply, refusal: Refusal): ErrorAnswer {
  const { status, headers, answer } = errorResponse(refusal);
  reply.code(status).headers(headers);
  return answer;
}

/** Status, headers and body, by the retry rule of the code. */
export function errorResponse(answer: Refusal) {
  const { httpStatus: status, retry } = ERROR_RULES[answer.code];
  if (retry === "never") return { status, headers: {}, answer };
  const retryAfterMs = answer.retryAfterMs ?? DEFAULT_RETRY_AFTER_MS;
  return { status, headers: { "retry-after": Math.ceil(retryAfterMs / 1000) }, answer: { ...answer, retryAfterMs } };
}

function errorAnswerOf(error: unknown): Refusal {
  if (error instanceof CoordinatorError) {
    const { code, message, retryAfterMs } = error;
    return retryAfterMs === undefined ? { code, message } : { code, message, retryAfterMs };
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
