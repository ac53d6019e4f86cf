/** Tokens of every role, the same in every run: what was found with one is found again from its bytes alone. */

import { digestOf, type TokenRecord, tokenIdOf } from "../../packages/coordinator/src/tokens/token.js";
import { TokenDoor } from "../../packages/coordinator/src/tokens/token-door.js";

export interface FuzzedToken {
  readonly token: string;
  readonly role: TokenRecord["role"];
  readonly namespace: string;
}

export const FUZZED_TOKENS: readonly FuzzedToken[] = ["main", "other"].flatMap((namespace) =>
  (["lease", "read", "operator"] as const).map((role) => {
    return { token: `cn_${`${role}-${namespace}-`.padEnd(42, "fuzz")}A`, role, namespace };
  }),
);

export function doorOfFuzzedTokens(): TokenDoor {
  return new TokenDoor(
    FUZZED_TOKENS.map(({ token, role, namespace }) => {
      const sha256 = digestOf(token).toString("hex");
      return { id: tokenIdOf(sha256), sha256, role, namespaces: [namespace], createdAtMs: 0 };
    }),
  );
}
