/**
 * From a word of Redis, or of our scripts, to an error code. Scripts refuse with a leading word; nothing but that word and
 * the detail behind it is read.
 */
import { CoordinatorError } from "../errors.js";
import { isRefusalCode, type RefusalCode, refused } from "../guard/refusals.js";
import { escapeAndShorten } from "../text.js";
import { withoutRepeatedWords } from "./redis-words.js";

/** What the command was about, for the message. */
export interface CommandContext {
  readonly namespace: string;
  /** Of a step: a refusal that does not bear it is not an answer to this step. */
  readonly nonce?: string;
}

/** Whose words they are. */
export interface Speaker {
  readonly server: string;
  /** What it was logged in with: never told. */
  readonly password?: string | undefined;
}

/** Words of the server that say what an operator must change; all others pass by themselves. */
const SERVER_HINTS: Readonly<Record<string, string>> = {
  NOAUTH:
    "it asks for a password: put the store's URL with user and password into CALLNUMBER_STORE, or into a file for --store-file",
  WRONGPASS: "it refuses user or password",
  NOPERM:
    "its ACL does not let this user do that. What a coordinator needs stands in deploy/redis/make-acl.sh; recover and move need the operator's user",
  READONLY: "it is a replica: point the store's URL at the master",
  OOM: "it has no memory left (maxmemory)",
  MISCONF: "it can't write to its disk",
  LOADING: "it is still loading its data",
  MASTERDOWN: "it is a replica that has lost its master",
  MOVED: "another node of the Cluster serves the key (a redis-cluster:// URL finds it)",
  ASK: "the key's slot is on its way to another node of the Cluster",
  TRYAGAIN: "the key's slot is on its way to another node of the Cluster",
  CLUSTERDOWN: "the Cluster has lost a part of itself, or this node has lost the others",
};

/** A script that came upon a command which the user may not run; Redis 7 and 6 say it so. */
const SCRIPT_NOT_PERMITTED = /user executing the script can't|ACL failure in script/;

/** Redis's own, which names a slot and an address; one of our words is the same. */
const REDIRECTION = /^(?:MOVED|ASK) \d+ \S*:\d+$/;

/** What the Redis client says of bytes that are not Redis's; it asks for a report to its author. */
const NOT_REDIS = /^Unknown RESP type/;

/** The error to throw for whatever a Redis command rejected with: a `CoordinatorError`, or our own fault as what it is. */
export function asStoreError(error: unknown, context: CommandContext, { server, password }: Speaker): Error {
  if (error instanceof CoordinatorError) return error;
  const said = error instanceof Error ? error.message : String(error);
  const message = escapeAndShorten(withoutRepeatedWords(said, password));
  // The driver's own error holds the words that were sent.
  const cause = Object.assign(new Error(message), { name: error instanceof Error ? error.name : "Error" });
  const refusal = refusalOfScript(said);
  if (refusal !== undefined) {
    const { word, nonce, detail } = refusal;
    if (isOther(nonce, context)) return strayAnswer(server, cause);
    const isNumber = /^-?\d{1,16}$/.test(detail);
    return refused(word, isNumber ? detail : withoutRepeatedWords(detail, password), context.namespace);
  }
  const [firstWord = ""] = said.split(" ", 1);
  const word = SCRIPT_NOT_PERMITTED.test(said) ? "NOPERM" : firstWord;
  const hint = Object.hasOwn(SERVER_HINTS, word) ? SERVER_HINTS[word] : undefined;
  const isAnswer = cause.name === "ReplyError";
  const told = isAnswer
    ? `Redis at ${server} refused: ${hint ?? message}`
    : `Redis at ${server} can't be reached: ${NOT_REDIS.test(said) ? "what answers there does not speak the Redis protocol" : message}`;
  return new CoordinatorError("store_unavailable", told, { cause });
}

/** Whether a script refused another command than this one. */
export function isStray(error: Error, context: CommandContext): boolean {
  const refusal = refusalOfScript(error.message);
  return refusal !== undefined && isOther(refusal.nonce, context);
}

function refusalOfScript(
  message: string,
): { readonly word: RefusalCode; readonly nonce: string; readonly detail: string } | undefined {
  const [, word = "", nonce = "", detail = ""] = /^([A-Z]+) (\S+) ?(.*)$/s.exec(message) ?? [];
  return isRefusalCode(word) && !REDIRECTION.test(message) ? { word, nonce, detail } : undefined;
}

function isOther(nonce: string, context: CommandContext): boolean {
  return context.nonce !== undefined && nonce !== context.nonce;
}

/** An answer came, but to another question: what this one did is not known. */
export function strayAnswer(server: string, cause?: unknown): CoordinatorError {
  return new CoordinatorError("store_unavailable", `Redis at ${server} answered another question than the one asked`, {
    cause,
  });
}
