/**
 * Lets in who bears a token that is known. Knows digests only, and nothing of where they are kept.
 * Whoever is not let in is not told why: a wrong token, a revoked one and none are the same.
 */
import { timingSafeEqual } from "node:crypto";
import type { FastifyRequest } from "fastify";
import type { Door } from "../http/auth.js";
import { ACCESSES_OF, type Caller } from "../http/caller.js";
import { bearerTokenIn } from "./bearer.js";
import { digestOf, TOKEN_PATTERN } from "./token.js";
import type { TokenRecord } from "./token-record.js";

interface KnownToken {
  readonly digest: Buffer;
  readonly caller: Caller;
  /** Equal for tokens that may do the same. */
  readonly key: string;
}

export type IsEqual = (one: Buffer, other: Buffer) => boolean;

export class TokenDoor implements Door {
  readonly #isEqual: IsEqual;
  #known: readonly KnownToken[] = [];
  #callers: ReadonlySet<Caller> = new Set();

  /** @param isEqual compares two digests in a time that tells nothing of them; another one is for tests. */
  constructor(records: readonly TokenRecord[], isEqual: IsEqual = timingSafeEqual) {
    this.#isEqual = isEqual;
    this.replace(records);
  }

  callerOf({ raw }: FastifyRequest): Caller | undefined {
    const token = bearerTokenIn(raw.rawHeaders);
    return token === undefined ? undefined : this.callerOfToken(token);
  }

  /**
   * Who bears the token; undefined when nobody is known by it. The same object for the same token, as long as `knows` holds.
   * Takes equally long whichever of the tokens it is, or whether it is none.
   */
  callerOfToken(token: string): Caller | undefined {
    if (!TOKEN_PATTERN.test(token)) return undefined;
    const digest = digestOf(token);
    let found: Caller | undefined;
    for (const { digest: known, caller } of this.#known) {
      // No early end: how long it takes must not tell how far down the list a guess came.
      if (this.#isEqual(known, digest)) found = caller;
    }
    return found;
  }

  /** Whether a caller of before would still be let in as the same: its token was neither revoked nor changed. */
  knows(caller: Caller): boolean {
    return this.#callers.has(caller);
  }

  /** From now on these tokens are good, and no others. */
  replace(records: readonly TokenRecord[]): void {
    const before = new Map(this.#known.map((token) => [token.key, token]));
    this.#known = records.map((record) => before.get(keyOf(record)) ?? knownToken(record));
    this.#callers = new Set(this.#known.map(({ caller }) => caller));
  }
}

function knownToken(record: TokenRecord): KnownToken {
  const { id, sha256, role, namespaces } = record;
  const caller = {
    tokenId: id,
    accesses: ACCESSES_OF[role],
    namespaces: namespaces === "all" ? namespaces : new Set(namespaces),
  };
  return { digest: Buffer.from(sha256, "hex"), caller, key: keyOf(record) };
}

function keyOf({ sha256, role, namespaces }: TokenRecord): string {
  return JSON.stringify([sha256, role, namespaces]);
}
