/**
 * Authenticates by tokens, of which it knows digests only. A client that is not authenticated does not learn why: a wrong token, a
 * revoked one and none are the same.
 */
import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { type Authenticator, PERMISSIONS_OF, type Principal } from "../http/auth.js";
import { digestOf, TOKEN_PATTERN, type TokenRecord } from "./tokens-file.js";

interface KnownToken {
  readonly digest: Buffer;
  readonly principal: Principal;
  /** Equal for records that grant the same access. */
  readonly key: string;
}

export type IsEqual = (one: Buffer, other: Buffer) => boolean;

/** Authenticates requests by the records of a tokens file; `replace` gives it others. */
export class TokenAuthenticator implements Authenticator {
  readonly #isEqual: IsEqual;
  #known: readonly KnownToken[] = [];
  #principals: ReadonlySet<Principal> = new Set();

  /** @param isEqual compares two digests in constant time; others are for tests. */
  constructor(records: readonly TokenRecord[], isEqual: IsEqual = timingSafeEqual) {
    this.#isEqual = isEqual;
    this.replace(records);
  }

  authenticate({ rawHeaders }: Pick<IncomingMessage, "rawHeaders">): Principal | undefined {
    const token = bearerTokenIn(rawHeaders);
    return token === undefined ? undefined : this.principalOf(token);
  }

  /**
   * Returns the principal with this token; undefined for an unknown token. The same object for the same token, as long as `isValid` holds.
   * Takes equally long for every token, known or not.
   */
  principalOf(token: string): Principal | undefined {
    if (!TOKEN_PATTERN.test(token)) return undefined;
    const digest = digestOf(token);
    let found: Principal | undefined;
    for (const { digest: known, principal } of this.#known) {
      // No early return: the duration must not show where in the list a token matched.
      if (this.#isEqual(known, digest)) found = principal;
    }
    return found;
  }

  /** Whether the token of a principal was neither revoked nor changed. */
  isValid(principal: Principal): boolean {
    return this.#principals.has(principal);
  }

  /** From now on these tokens grant access, and no others. */
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

/** As RFC 9110 and 6750 write it. */
const BEARER = /^bearer +([^ ]+)$/i;

/**
 * Returns the bearer token; undefined when there is not exactly one. Node's `headers` keep the first of two `Authorization` headers and drop
 * the other, by which a proxy in front may have decided; `headersDistinct` ends the process for a header `__proto__` before Node 20.20.2
 * (CVE-2026-21710). So the headers are read as they arrived, names and values in turn.
 */
export function bearerTokenIn(rawHeaders: readonly string[]): string | undefined {
  const isAuthorization = (name: string | undefined) => name?.toLowerCase() === "authorization";
  const values = rawHeaders.filter((_, index) => index % 2 === 1 && isAuthorization(rawHeaders[index - 1]));
  return values.length === 1 ? BEARER.exec(values[0] as string)?.[1] : undefined;
}
