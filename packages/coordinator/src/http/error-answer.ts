/**
 * From anything thrown to the answer: body, status and `Retry-After`, by the tables of the protocol.
 * Strangers read these bodies: a fault of our own is named `internal_error` and nothing more; the log has the rest.
 */
import { ERROR_RULES, type ErrorAnswer, type ErrorCode, NAMESPACE_PATTERN } from "@callnumber/protocol/wire";
import type { FastifyReply, FastifyRequest } from "fastify";
import { hasZodFastifySchemaValidationErrors } from "fastify-type-provider-zod";
import { CoordinatorError } from "../errors.js";

const DEFAULT_RETRY_AFTER_MS = 1_000;

/** fastify's own codes for requests that never reach a route. */
const FASTIFY_CODES: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: "body_too_large",
  FST_ERR_CTP_INVALID_MEDIA_TYPE: "unsupported_media_type",
};

export async function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): Promise<ErrorAnswer> {
  const answer = errorAnswerOf(error);
  if (answer.code === "internal_error") request.log.error({ err: error, path: request.url }, "internal_error");
  else
    request.log.info(
      { ...subjectOf(request), code: answer.code, reason: answer.message, path: request.url },
      "refusal",
    );
  return sendError(reply, answer);
}

/** Sets status and headers, and answers the body. */
export function sendError(reply: FastifyReply, answer: ErrorAnswer & { readonly code: ErrorCode }): ErrorAnswer {
  const { httpStatus, retry } = ERROR_RULES[answer.code];
  reply.code(httpStatus);
  if (retry === "never") return answer;
  const retryAfterMs = answer.retryAfterMs ?? DEFAULT_RETRY_AFTER_MS;
  reply.header("retry-after", Math.ceil(retryAfterMs / 1000));
  return { ...answer, retryAfterMs };
}

/** Which namespace was asked for, where a route knows one; the text is a stranger's, and may be no namespace at all. */
function subjectOf({ params }: FastifyRequest): { namespace?: string } {
  const { namespace } = (params ?? {}) as { namespace?: unknown };
  return typeof namespace === "string" && NAMESPACE_PATTERN.test(namespace) ? { namespace } : {};
}

function errorAnswerOf(error: unknown): ErrorAnswer & { readonly code: ErrorCode } {
  if (error instanceof CoordinatorError) {
    const { code, message, retryAfterMs } = error;
    return retryAfterMs === undefined ? { code, message } : { code, message, retryAfterMs };
  }
  if (hasZodFastifySchemaValidationErrors(error)) {
    const problems = error.validation.map(({ instancePath, message }) => `${fieldName(instancePath)}: ${message}`);
    return { code: "invalid_request", message: `${error.validationContext}: ${problems.join("; ")}` };
  }
  const { code, statusCode, message } = error as { code?: string; statusCode?: number; message?: string };
  const known = code !== undefined && Object.hasOwn(FASTIFY_CODES, code) ? FASTIFY_CODES[code] : undefined;
  if (known !== undefined) return { code: known, message: message ?? known };
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return { code: "invalid_request", message: message ?? "the request can't be read" };
  }
  return { code: "internal_error", message: "the coordinator met a fault of its own; its log says more" };
}

function fieldName(instancePath: string): string {
  return instancePath.replace(/^\//, "").replaceAll("/", ".") || "the whole";
}
