/** Tokens that a test has in its hand, and can revoke: the console asks whoever knows tokens by the same two questions. */
import type { Door } from "../src/http/auth.js";
import { ACCESSES_OF, type Caller, type Role } from "../src/http/caller.js";
import type { SignInTokens } from "../src/http/sessions.js";

export class TokensInHand implements Door, SignInTokens {
  readonly #callers = new Map<string, Caller>();

  add(token: string, role: Role, namespaces: "all" | readonly string[] = "all"): string {
    const tokenId = String(this.#callers.size).padStart(8, "0");
    const reach = namespaces === "all" ? namespaces : new Set(namespaces);
    this.#callers.set(token, { tokenId, accesses: ACCESSES_OF[role], namespaces: reach });
    return token;
  }

  revoke(token: string): void {
    this.#callers.delete(token);
  }

  callerOf: Door["callerOf"] = ({ headers: { authorization = "" } }) =>
    this.#callers.get(/^Bearer (\S+)$/.exec(authorization)?.[1] ?? "");

  callerOfToken(token: string): Caller | undefined {
    return this.#callers.get(token);
  }

  knows(caller: Caller): boolean {
    return [...this.#callers.values()].includes(caller);
  }
}
