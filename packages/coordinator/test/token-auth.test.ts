/** Authentication by tokens: an edited token is unknown, and each token is compared with all of them. */
import { timingSafeEqual } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyCharacter } from "../../../test/any-character.js";
import { PERMISSIONS_OF } from "../src/http/auth.js";
import { bearerTokenIn, TokenAuthenticator } from "../src/tokens/token-auth.js";
import {
  digestOf,
  makeToken,
  newToken,
  TOKEN_PATTERN,
  type TokenSettings,
  tokenIdOf,
} from "../src/tokens/tokens-file.js";

const LEASE: TokenSettings = { role: "lease", namespaces: ["main"] };
const made = (own: Partial<TokenSettings> = {}) => makeToken({ ...LEASE, ...own }, new Set(), 1);

const asked = (...rawHeaders: string[]) => ({ rawHeaders });

/** A text with one thing done to it at a place: often the same length, often almost the same. */
const edited = (text: string) =>
  fc
    .record({
      at: fc.nat(text.length),
      length: fc.nat(3),
      put: fc.oneof(fc.string({ maxLength: 3 }), fc.string({ unit: anyCharacter, maxLength: 2 }), fc.constant(text)),
    })
    .map(({ at, length, put }) => text.slice(0, at) + put + text.slice(at + length));

test("a token is cn_ and 32 random bytes, and its id the beginning of its hash", () => {
  const tokens = Array.from({ length: 1_000 }, newToken);
  expect(new Set(tokens).size).toBe(1_000);
  for (const token of tokens) {
    expect(token).toMatch(TOKEN_PATTERN);
    expect(token).toHaveLength(46);
    expect(Buffer.from(token.slice(3), "base64url")).toHaveLength(32);
  }
  expect(tokenIdOf(digestOf("password").toString("hex"))).toBe("5e884898");
});

test("a token has an id that no other token of the file has", () => {
  const taken = { has: (id: string) => !id.startsWith("0") } as unknown as ReadonlySet<string>;
  expect(makeToken(LEASE, taken, 1).record.id).toMatch(/^0/);
});

test("an authenticator knows each of its tokens, with role, namespaces and id, and no other", () => {
  const tokens = [
    made(),
    made({ role: "read", namespaces: "all" }),
    made({ role: "operator", namespaces: ["a", "b"] }),
  ];
  const authenticator = new TokenAuthenticator(tokens.map(({ record }) => record));
  expect(tokens.map(({ token }) => authenticator.principalOf(token))).toEqual([
    { tokenId: tokens[0]?.record.id, permissions: PERMISSIONS_OF.lease, namespaces: new Set(["main"]) },
    { tokenId: tokens[1]?.record.id, permissions: PERMISSIONS_OF.read, namespaces: "all" },
    { tokenId: tokens[2]?.record.id, permissions: PERMISSIONS_OF.operator, namespaces: new Set(["a", "b"]) },
  ]);
  expect(authenticator.principalOf(newToken())).toBeUndefined();
  expect(new TokenAuthenticator([]).principalOf(tokens[0]?.token ?? "")).toBeUndefined();
});

test("an authenticator compares with every token, wherever the right one is and when there is none", () => {
  const compared: Buffer[] = [];
  const isEqual = (one: Buffer, other: Buffer) => {
    compared.push(one);
    return timingSafeEqual(one, other);
  };
  const tokens = Array.from({ length: 20 }, () => made());
  const digests = tokens.map(({ token }) => digestOf(token));
  const authenticator = new TokenAuthenticator(
    tokens.map(({ record }) => record),
    isEqual,
  );
  for (const { token } of [...tokens, { token: newToken() }]) {
    compared.length = 0;
    authenticator.principalOf(token);
    expect(compared).toEqual(digests);
  }
});

test("an authenticator rejects a token that was edited", () => {
  const { token, record } = made();
  const authenticator = new TokenAuthenticator([record]);
  fc.assert(
    fc.property(edited(token), (text) => {
      expect(authenticator.principalOf(text) !== undefined).toBe(text === token);
    }),
    { numRuns: 2_000 },
  );
});

test("an authenticator rejects a header that is not the scheme, spaces and the token", () => {
  const { token, record } = made();
  const authenticator = new TokenAuthenticator([record]);
  const isRight = (value: string) => {
    const [scheme = "", ...rest] = value.split(" ");
    return (
      scheme.toLowerCase() === "bearer" &&
      rest.length > 0 &&
      rest.filter((part) => part !== "").join("|") === token &&
      rest.at(-1) === token
    );
  };
  fc.assert(
    fc.property(edited(`Bearer ${token}`), (value) => {
      expect(authenticator.authenticate(asked("authorization", value)) !== undefined).toBe(isRight(value));
    }),
    { numRuns: 2_000 },
  );
});

test("an authenticator knows a client until its token is revoked or changed", () => {
  const [stays, goes, changes] = [made(), made(), made()];
  const authenticator = new TokenAuthenticator([stays.record, goes.record, changes.record]);
  const clients = [stays, goes, changes].map(({ token }) => authenticator.principalOf(token));
  expect(clients.map((client) => client !== undefined && authenticator.isValid(client))).toEqual([true, true, true]);
  const noted = { ...stays.record, note: "the importer of the lists" };
  const fresh = made();
  authenticator.replace([noted, { ...changes.record, namespaces: "all" }, fresh.record]);
  expect(clients.map((client) => client !== undefined && authenticator.isValid(client))).toEqual([true, false, false]);
  expect(authenticator.principalOf(stays.token)).toBe(clients[0]);
  expect(authenticator.principalOf(goes.token)).toBeUndefined();
  expect(authenticator.principalOf(changes.token)?.namespaces).toBe("all");
  expect(authenticator.principalOf(fresh.token)?.tokenId).toBe(fresh.record.id);
});

describe("the Authorization header", () => {
  const token = newToken();

  // Other malformed ones are in http-tokens.test.ts, and in the property above.
  test.each<[what: string, rawHeaders: readonly string[], isValid: boolean]>([
    ["as documented", ["Authorization", `Bearer ${token}`], true],
    ["with its name in any case", ["host", "x", "aUTHORIZATION", `bEARER   ${token}`], true],
    ["next to a value that is its name", ["x-note", "authorization", "authorization", `Bearer ${token}`], true],
    ["that is there twice", ["authorization", `Bearer ${token}`, "Authorization", `Bearer ${token}`], false],
    ["that is a value, not a name", ["x-header", "authorization", "x-other", `Bearer ${token}`], false],
    ["with a line feed", ["authorization", `Bearer x\nBearer ${token}`], false],
  ])("the Authorization header %s yields its token, or none when invalid", (_, rawHeaders, isValid) => {
    expect(bearerTokenIn(rawHeaders)).toBe(isValid ? token : undefined);
  });
});
