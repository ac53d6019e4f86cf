/** Makes a token and what is kept of it. */
import { digestOf, newToken, tokenIdOf } from "./token.js";
import type { TokenRecord } from "./token-record.js";

export interface TokenWishes {
  readonly role: TokenRecord["role"];
  readonly namespaces: TokenRecord["namespaces"];
  readonly note?: string | undefined;
}

export interface MadeToken {
  /** Told once, and kept nowhere. */
  readonly token: string;
  readonly record: TokenRecord;
}

/** A token whose id nobody else has: people revoke by it. */
export function makeToken(wishes: TokenWishes, taken: ReadonlySet<string>, nowMs: number): MadeToken {
  for (;;) {
    const token = newToken();
    const sha256 = digestOf(token).toString("hex");
    const id = tokenIdOf(sha256);
    if (!taken.has(id)) return { token, record: recordOf(id, sha256, wishes, nowMs) };
  }
}

function recordOf(id: string, sha256: string, { role, namespaces, note }: TokenWishes, nowMs: number): TokenRecord {
  const record = { id, sha256, role, namespaces, createdAtMs: nowMs };
  return note === undefined ? record : { ...record, note };
}
