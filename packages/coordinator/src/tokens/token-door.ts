/**
 * Lets in who bears a token that is known. Knows digests only, and nothing of where they are kept.
 * Whoever is not let in is not told why: a wrong token, a revoked one and none are the same.
 */
import { timingSafeEqual } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { type Authenticator, PERMISSIONS_OF, type Principal } from "../http/auth.js";
import { bearerTokenIn } from "./bearer.js";
import { digestOf, TOKEN_PATTERN } from "./token.js";
import type { TokenRecord } from "./token-record.js";

interface KnownToken {
  readonly digest: Buffer;
  readonly principal: Principal;
  /** Equal for tokens that may do the same. */
  readonly key: string;
}

export type IsEqual = (one: Buffer, other: Buffer) => boolean;

export class TokenDoor implements Authenticator {
  readonly #isEqual: IsEqual;
  #known: readonly KnownToken[] = [];
  #principals: ReadonlySet<Principal> = new Set();

  /** @param isEqual compares two digests in a time that tells nothing of them; another one is for tests. */
  constructor(records: readonly TokenRecord[], isEqual: IsEqual = timingSafeEqual) {
    this.#isEqual = isEqual;
    this.replace(records);
  }

  authenticate({ raw }: FastifyRequest): Principal | undefined {
    const token = bearerTokenIn(raw.rawHeaders);
    return token === undefined ? undefined : this.principalOf(token);
  }

  /**
   * Who bears the token; undefined when nobody is known by it. The same object for the same token, as long as `isValid` holds.
   * Takes equally long whichever of the tokens it is, or whether it is none.
   */
  principalOf(token: string): Principal | undefined {
    if (!TOKEN_PATTERN.test(token)) return undefined;
    const digest = digestOf(token);
    let found: Principal | undefined;
    for (const { digest: known, principal } of this.#known) {
      // No early end: how long it takes must not tell how far down the list a guess came.
      if (this.#isEqual(known, digest)) found = principal;
    }
    return found;
  }

  /** Whether a principal of before would still be authenticated as the same: its token was neither revoked nor changed. */
  isValid(principal: Principal): boolean {
    return this.#principals.has(principal);
  }

  /** From now on these tokens are good, and no others. */
  replace(records: readonly TokenRecord[]): void {
    const before = new Map(this.#known.map((token) => [token.key, token]));
    this.#known = records.map((record) => before.get(keyOf(record)) ?? knownToken(record));
    this.#principals = new Set(this.#known.map(({ principal }) => principal));
  }
}

function knownToken(record: TokenRecord): KnownToken {
  const { id, sha256, role, namespaces } = record;
  const principal = {
    tokenId: id,
    permissions: PERMISSIONS_OF[role],
    namespaces: namespaces === "all" ? namespaces : new Set(namespaces),
  };
  return { digest: Buffer.from(sha256, "hex"), principal, key: keyOf(record) };
}

function keyOf({ sha256, role, namespaces }: TokenRecord): string {
  return JSON.stringify([sha256, role, namespaces]);
}
