/**
 * From an error reply of Redis, or of our scripts, to an error code. Scripts refuse with a leading word; nothing but that word
 * and the detail behind it is read.
 */
import { CoordinatorError } from "../../errors.js";
import { isRefusalCode, type RefusalCode, refused } from "../../guard/refusals.js";
import { escapeAndShorten } from "../../text.js";

/** What a command was about, for the message. */
export interface CommandContext {
  readonly namespace: string;
  /** Of a step: a refusal with another nonce is the reply to another step. */
  readonly nonce?: string;
}

/** Error replies that say what an operator must change. */
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

/** A script ran a command that the user may not run; Redis 7 and 6 report it so. */
const SCRIPT_NOT_PERMITTED = /user executing the script can't|ACL failure in script/;

/** Redis's own reply, which names a slot and an address; one of our words is the same. */
const REDIRECTION = /^(?:MOVED|ASK) \d+ \S*:\d+$/;

/** Redis repeats the arguments of a command that it does not know, and the command may have been AUTH. */
const REPEATED_ARGUMENTS = /, with args beginning with.*$/s;

/** What the Redis client reports of bytes that are not RESP; it asks for a report to its author. */
const NOT_REDIS = /^Unknown RESP type/;

/**
 * The error to throw for whatever a Redis command rejected with: always a `CoordinatorError`.
 * @param server host and port of the server that replied.
 */
export function asStoreError(error: unknown, context: CommandContext, server: string): CoordinatorError {
  if (error instanceof CoordinatorError) return error;
  const reply = error instanceof Error ? error.message : String(error);
  const text = reply.replace(REPEATED_ARGUMENTS, "");
  const message = escapeAndShorten(text);
  // The client's own error holds the command that was sent.
  const cause = Object.assign(new Error(message), { name: error instanceof Error ? error.name : "Error" });
  const refusal = refusalIn(text);
  if (refusal !== undefined) {
    const { word, nonce, detail } = refusal;
    if (isOther(nonce, context)) return unexpectedReply(server, cause);
    return refused(word, detail, context.namespace);
  }
  const [firstWord = ""] = text.split(" ", 1);
  const word = SCRIPT_NOT_PERMITTED.test(text) ? "NOPERM" : firstWord;
  const hint = Object.hasOwn(SERVER_HINTS, word) ? SERVER_HINTS[word] : undefined;
  const explanation =
    cause.name === "ReplyError"
      ? `Redis at ${server} refused: ${hint ?? message}`
      : `Redis at ${server} can't be reached: ${NOT_REDIS.test(text) ? "what answers there does not speak the Redis protocol" : message}`;
  return new CoordinatorError("store_unavailable", explanation, { cause });
}

/** Whether a script refused another step than this one. */
export function isOtherStepsRefusal(error: Error, context: CommandContext): boolean {
  const refusal = refusalIn(error.message);
  return refusal !== undefined && isOther(refusal.nonce, context);
}

/** A reply came, but not to this command: whether the command was done is not known. */
export function unexpectedReply(server: string, cause?: unknown): CoordinatorError {
  return new CoordinatorError("store_unavailable", `Redis at ${server} answered another question than the one asked`, {
    cause,
  });
}

function refusalIn(
  message: string,
): { readonly word: RefusalCode; readonly nonce: string; readonly detail: string } | undefined {
  const [, word = "", nonce = "", detail = ""] = /^([A-Z]+) (\S+) ?(.*)$/s.exec(message) ?? [];
  return isRefusalCode(word) && !REDIRECTION.test(message) ? { word, nonce, detail } : undefined;
}

function isOther(nonce: string, context: CommandContext): boolean {
  return context.nonce !== undefined && nonce !== context.nonce;
}
