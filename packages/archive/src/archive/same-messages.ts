/** Finds the stored messages that a new one is the same as, or that have its Message-ID. message/sameness.ts has the rules. */
import type { DatabaseSyncInstance as Database } from "@photostructure/sqlite";
import { type Identity, SAME_RULES, type SameRule, sameRule } from "../message/sameness.js";

/**
 * What happens to a message that is stored already from another place. `skip`: the place is listed in `copies`, under the number of the
 * stored one · `number`: it gets a number of its own.
 */
export type SameContent = "skip" | "number";

/** A stored message that a new one is the same as, and by which rule. */
export interface Same {
  readonly callNumber: string;
  readonly list: string | null;
  readonly why: SameRule;
}

const SELECT_IDENTITY = `select call_number as callNumber, message_id as messageId, from_line as fromLine, list,
  is_list_given as isListGiven, content_hash as contentHash, message_hash as messageHash, body_hash as bodyHash from messages`;
/** More are alike only where each got a number of its own. */
const CANDIDATE_COUNT_MAX = 1000;
const SELECT_SAME_MESSAGE = `${SELECT_IDENTITY} where message_hash = ? limit ${CANDIDATE_COUNT_MAX}`;
const SELECT_SAME_BODY = `${SELECT_IDENTITY} where message_id = ? and body_hash = ? limit ${CANDIDATE_COUNT_MAX}`;
const SELECT_EARLIER =
  "select call_number as callNumber, list, raw from messages where message_id = ? order by rowid limit 1";
export class SameMessages {
  readonly #rules: readonly SameRule[];
  readonly #withMessage;
  readonly #withBody;
  readonly #earliest;

  /** `weakestRule`: the weakest one by which two messages are the same. */
  constructor(database: Database, weakestRule: SameRule) {
    this.#rules = SAME_RULES.slice(0, SAME_RULES.indexOf(weakestRule) + 1);
    this.#withMessage = database.prepare(SELECT_SAME_MESSAGE);
    this.#withBody = database.prepare(SELECT_SAME_BODY);
    this.#earliest = database.prepare(SELECT_EARLIER);
  }

  /** Returns the stored message that is the same by the strongest rule. */
  find(message: Identity): Same | undefined {
    const { messageHash, messageId, bodyHash } = message;
    const rows = this.#withMessage.all(messageHash);
    if (rows.length === 0 && messageId !== null && this.#rules.includes("message-id-and-body")) {
      rows.push(...this.#withBody.all(messageId, bodyHash));
    }
    const found = rows.map((row) => ({ row, rule: sameRule(message, identityIn(row)) }));
    for (const why of this.#rules) {
      const row = found.find(({ rule }) => rule === why)?.row;
      if (row !== undefined)
        return { callNumber: row["callNumber"] as string, list: row["list"] as string | null, why };
    }
    return undefined;
  }

  /** Returns the message that was stored first of those with this Message-ID. */
  earliest(messageId: string): { callNumber: string; list: string | null; raw: Buffer } | undefined {
    const row = this.#earliest.get(messageId);
    if (row === undefined) return undefined;
    return { callNumber: row["callNumber"] as string, list: row["list"] as string | null, raw: bytesOf(row["raw"]) };
  }
}

function bytesOf(value: unknown): Buffer {
  const { buffer, byteOffset, byteLength } = value as Uint8Array;
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
}

function identityIn(row: Record<string, unknown>): Identity {
  return {
    messageId: row["messageId"] as string | null,
    fromLine: row["fromLine"] === null ? null : bytesOf(row["fromLine"]),
    list: row["list"] as string | null,
    isListGiven: row["isListGiven"] === 1,
    contentHash: bytesOf(row["contentHash"]),
    messageHash: bytesOf(row["messageHash"]),
    bodyHash: bytesOf(row["bodyHash"]),
  };
}
