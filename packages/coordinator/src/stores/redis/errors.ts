/** From an error reply of Redis, to a command or in a script of ours, to an error code. */
import { CoordinatorError } from "../../errors.js";
import { refused } from "../../guard/refusals.js";
import { escapeAndShorten } from "../../text.js";

/** Error replies that show what an operator must change. */
const SERVER_HINTS: Readonly<Record<string, string>> = {
  NOAUTH:
    "it asks for a password: put the store's URL with user and password into CALLNUMBER_STORE, or into a file that CALLNUMBER_STORE_FILE names",
  WRONGPASS: "it rejects user or password",
  NOPERM:
    "its ACL does not let this user do that. What a coordinator needs is in deploy/redis/make-acl.sh; recover and move need the operator's user",
  READONLY: "it is a replica: point the store's URL at the master",
  OOM: "it has no memory left (maxmemory)",
  MISCONF: "it can't write to its disk. Free space there, or see its log",
  LOADING: "it is still loading its data",
  MASTERDOWN: "it is a replica that has lost its master",
  MOVED: "another node of the Cluster serves the key (a redis-cluster:// URL finds it)",
  ASK: "the key's slot is on its way to another node of the Cluster",
  TRYAGAIN: "the key's slot is on its way to another node of the Cluster",
  CLUSTERDOWN: "the Cluster has lost a part of itself, or this node has lost the others",
};

/** A script ran a command that the user may not run; Redis 7 and 6 report it so. */
const SCRIPT_NOT_PERMITTED = /user executing the script can't|ACL failure in script/;

/** A key of ours has another type: another program wrote it. */
const WRONG_TYPE = /\bWRONGTYPE\b/;

/** Redis repeats the arguments of a command that it does not know, and the command may have been AUTH. */
const REPEATED_ARGUMENTS = /, with args beginning with.*$/s;

/** What the Redis client reports of bytes that are not RESP; it asks for a report to its author. */
const NOT_REDIS = /^Unknown RESP type/;

/** The error for whatever a Redis command rejected with. `server`: host and port, for the message. */
export function asStoreError(error: unknown, namespace: string, server: string): CoordinatorError {
  if (error instanceof CoordinatorError) return error;
  const { name, message: reply } = error as Error;
  const text = reply.replace(REPEATED_ARGUMENTS, "");
  if (WRONG_TYPE.test(text)) return refused("CORRUPT", "a key of the namespace has another type", namespace);
  const message = escapeAndShorten(text);
  const word = SCRIPT_NOT_PERMITTED.test(text) ? "NOPERM" : (text.split(" ", 1)[0] ?? "");
  const hint = Object.hasOwn(SERVER_HINTS, word) ? SERVER_HINTS[word] : undefined;
  const explanation =
    name === "ReplyError"
      ? `Redis at ${server} rejected: ${hint ?? message}`
      : `Redis at ${server} can't be reached: ${NOT_REDIS.test(text) ? "what answers there does not speak the Redis protocol" : message}`;
  // The client's own error holds the command that was sent.
  const cause = Object.assign(new Error(message), { name });
  return new CoordinatorError("store_unavailable", explanation, { cause });
}
