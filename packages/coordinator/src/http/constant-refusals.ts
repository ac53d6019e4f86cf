/**
 * Answers to requests that are turned away before they are read: constant, so that nothing a stranger sent comes back. Pure.
 */
import { STATUS_CODES } from "node:http";
import { ERROR_RULES, type ErrorAnswer, type ErrorCode } from "@callnumber/protocol/wire";
import { FOR_OWN_PAGES } from "./own-page-headers.js";

const RETRY_AFTER_MS = 1_000;

/** Why a request is turned away, in words of ours alone. */
export interface ConstantRefusal {
  readonly code: ErrorCode;
  readonly message: string;
  /** Default: a second. Told only where the code lets a caller ask again. */
  readonly retryAfterMs?: number;
  /** Headers beside the usual ones. */
  readonly headers?: Readonly<Record<string, string>>;
}

interface RefusalAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: string;
}

export function refusalAnswer({ code, message, retryAfterMs, headers }: ConstantRefusal): RefusalAnswer {
  const { httpStatus, retry } = ERROR_RULES[code];
  const waitMs = retry === "later" ? (retryAfterMs ?? RETRY_AFTER_MS) : undefined;
  const answer: ErrorAnswer = waitMs === undefined ? { code, message } : { code, message, retryAfterMs: waitMs };
  const body = JSON.stringify(answer);
  return {
    status: httpStatus,
    headers: {
      ...FOR_OWN_PAGES,
      "content-type": "application/json; charset=utf-8",
      "cache-control": "no-store",
      ...(waitMs === undefined ? {} : { "retry-after": Math.ceil(waitMs / 1000) }),
      ...headers,
      "content-length": Buffer.byteLength(body),
    },
    body,
  };
}

/** The same, as the last of its connection. */
export function lastRefusalAnswer(refusal: ConstantRefusal): RefusalAnswer {
  const { headers, ...answer } = refusalAnswer(refusal);
  return { ...answer, headers: { ...headers, connection: "close" } };
}

/** The last as bytes, for a connection on which nothing can be read any more. */
export function refusalText(refusal: ConstantRefusal): string {
  const { status, headers, body } = lastRefusalAnswer(refusal);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${body}`;
}
