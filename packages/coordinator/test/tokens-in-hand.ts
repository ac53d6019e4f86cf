/** Tokens that a test has in its hand, and can revoke. */
import { type Authenticator, PERMISSIONS_OF, type Principal, type Role } from "../src/http/auth.js";

export class TokensInHand implements Authenticator {
  readonly #principals = new Map<string, Principal>();

  add(token: string, role: Role, namespaces: "all" | readonly string[] = "all"): string {
    const tokenId = String(this.#principals.size).padStart(8, "0");
    const reach = namespaces === "all" ? namespaces : new Set(namespaces);
    this.#principals.set(token, { tokenId, permissions: PERMISSIONS_OF[role], namespaces: reach });
    return token;
  }

  revoke(token: string): void {
    this.#principals.delete(token);
  }

  authenticate: Authenticator["authenticate"] = ({ headers: { authorization = "" } }) =>
    this.#principals.get(/^Bearer (\S+)$/.exec(authorization)?.[1] ?? "");

  isValid(principal: Principal): boolean {
    return [...this.#principals.values()].includes(principal);
  }
}
