/**
 * From a word of Redis, or of our scripts, to an error code. Scripts refuse with a leading word; nothing but that word and
 * the detail behind it is read.
 */
import type { ErrorCode } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { alreadyInitialised, exhausted, notInitialised, notLeased, notTheHolder, wentBack } from "../refusals.js";

/** What the command was about, for the message. */
export interface CommandContext {
  readonly namespace: string;
  readonly floor?: number;
}

type Refusal = (context: CommandContext, detail: string) => CoordinatorError;

/** The words of our scripts. */
const SCRIPT_WORDS: Readonly<Record<string, Refusal>> = {
  EMPTY: ({ namespace }) => notInitialised(namespace),
  ALREADY: ({ namespace }) => alreadyInitialised(namespace),
  ROLLBACK: ({ namespace, floor }, detail) => wentBack(namespace, Number(detail), floor ?? 0),
  EXHAUSTED: ({ namespace }, detail) => exhausted(namespace, Number(detail)),
  NOTLEASED: ({ namespace }, detail) => notLeased(namespace, Number(detail)),
  NOTHOLDER: (_, detail) => notTheHolder(Number(detail)),
  CORRUPT: ({ namespace }, detail) =>
    storeError(
      "store_corrupt",
      `the keys of namespace "${namespace}" were changed by another hand (${detail}). Nothing is leased`,
    ),
  VERSION: ({ namespace }, detail) =>
    storeError(
      "store_unknown_schema",
      `the record of namespace "${namespace}" has schema version ${detail}; this release reads version 1`,
    ),
};

/** Words of the server that say what an operator must change; all others pass by themselves. */
const SERVER_HINTS: Readonly<Record<string, string>> = {
  NOAUTH: "it asks for a password: give user and password in the store's URL",
  WRONGPASS: "it refuses user or password",
  NOPERM: "its ACL does not let this user run what the coordinator needs",
  READONLY: "it is a replica: point the store's URL at the master",
  OOM: "it has no memory left (maxmemory)",
  MISCONF: "it can't write to its disk",
};

/** The error to throw for whatever a Redis command rejected with: a `CoordinatorError`, or our own fault as what it is. */
export function asStoreError(error: unknown, context: CommandContext, server: string): Error {
  if (error instanceof CoordinatorError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const [, word = "", detail = ""] = /^([A-Z]+) ?(.*)$/s.exec(message) ?? [];
  if (word === "MISUSE") return new Error(`broken invariant: ${message}`);
  const refusal = Object.hasOwn(SCRIPT_WORDS, word) ? SCRIPT_WORDS[word] : undefined;
  if (refusal !== undefined) return refusal(context, detail);
  const hint = Object.hasOwn(SERVER_HINTS, word) ? SERVER_HINTS[word] : undefined;
  const isAnswer = error instanceof Error && error.name === "ReplyError";
  const told = isAnswer
    ? `Redis at ${server} refused: ${hint ?? message}`
    : `Redis at ${server} can't be reached: ${message}`;
  return new CoordinatorError("store_unavailable", told, { cause: error });
}

function storeError(code: ErrorCode, message: string): CoordinatorError {
  return new CoordinatorError(code, message);
}
