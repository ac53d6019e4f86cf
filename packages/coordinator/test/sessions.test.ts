/** How long somebody stays signed in at the console, and how many are. */
import { expect, test } from "vitest";
import { ACCESSES_OF, type Caller } from "../src/http/caller.js";
import {
  SESSION_AGE_MAX_MS,
  SESSION_COUNT_MAX,
  SESSION_IDLE_MAX_MS,
  SESSIONS_OF_TOKEN_MAX,
  Sessions,
} from "../src/http/sessions.js";
import { TokensInHand } from "./tokens-in-hand.js";

function signedIn(role: "read" | "operator" = "operator") {
  const clock = { nowMs: 0 };
  const tokens = new TokensInHand();
  const sessions = new Sessions(tokens, () => clock.nowMs);
  const callerOf = (token: string) => sessions.callerOfToken(token) as Caller;
  tokens.add("a", role);
  return { clock, tokens, sessions, callerOf, secret: sessions.begin(callerOf("a")) };
}

test("a session is 256 random bits, each time others, and looks whatever the token may", () => {
  const { sessions, callerOf, secret } = signedIn();
  expect(Buffer.from(secret, "base64url")).toHaveLength(32);
  expect(sessions.begin(callerOf("a"))).not.toBe(secret);
  expect([...ACCESSES_OF.operator]).toContain("change");
  expect([...(sessions.use(secret)?.caller.accesses ?? [])]).toEqual(["public", "read"]);
  for (const other of ["", "a", secret.slice(1), `${secret.slice(1)}A`, `${secret} `, undefined as unknown as string])
    expect(sessions.use(other)).toBeUndefined();
});

test("a session ends when nobody used it for an hour, also for an answer that has no end", () => {
  const { clock, sessions, secret } = signedIn();
  clock.nowMs += SESSION_IDLE_MAX_MS - 1;
  const caller = sessions.use(secret)?.caller as Caller;
  clock.nowMs += SESSION_IDLE_MAX_MS - 1;
  expect(sessions.knows(caller)).toBe(true);
  clock.nowMs += 1;
  // To be known is not to be used.
  expect(sessions.knows(caller)).toBe(false);
  expect(sessions.use(secret)).toBeUndefined();
  expect(sessions.count).toBe(0);
});

test("a session ends after eight hours, however much it is used", () => {
  const { clock, sessions, secret } = signedIn();
  for (; clock.nowMs < SESSION_AGE_MAX_MS; clock.nowMs += 60_000)
    expect(sessions.use(secret)?.endsInMs).toBe(SESSION_AGE_MAX_MS - clock.nowMs);
  expect(sessions.use(secret)).toBeUndefined();
});

test("a session ends when it is told to, and when its token is revoked, and no other does", () => {
  const { tokens, sessions, callerOf, secret } = signedIn();
  tokens.add("b", "read");
  const other = sessions.begin(callerOf("b"));
  const again = sessions.begin(callerOf("a"));
  sessions.end(secret);
  expect([secret, again, other].map((one) => sessions.use(one) !== undefined)).toEqual([false, true, true]);
  tokens.revoke("a");
  expect([again, other].map((one) => sessions.use(one) !== undefined)).toEqual([false, true]);
});

test("whoever signs in for ever pushes out own sessions, the longest idle first, and nobody else's", () => {
  const { clock, tokens, sessions, callerOf, secret } = signedIn();
  tokens.add("b", "read");
  const own = Array.from({ length: SESSIONS_OF_TOKEN_MAX }, () => {
    clock.nowMs += 1;
    return sessions.begin(callerOf("b"));
  });
  sessions.use(own[0] as string);
  for (let count = 0; count < SESSION_COUNT_MAX; count++) {
    clock.nowMs += 1;
    sessions.begin(callerOf("b"));
    if (count === 0) expect(own.map((one) => sessions.use(one) !== undefined).indexOf(false)).toBe(1);
  }
  expect(sessions.use(secret)).toBeDefined();
  expect(sessions.count).toBe(SESSIONS_OF_TOKEN_MAX + 1);
});

test("there are never more sessions than there is room for: the longest idle goes", () => {
  const { clock, tokens, sessions, callerOf, secret } = signedIn();
  for (let count = 0; count < SESSION_COUNT_MAX * 2; count++) {
    clock.nowMs += 1;
    sessions.use(secret);
    sessions.begin(callerOf(tokens.add(`token-${count}`, "read")));
  }
  expect(sessions.count).toBe(SESSION_COUNT_MAX);
  expect(sessions.use(secret)).toBeDefined();
});
