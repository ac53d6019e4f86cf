/**
 * Who is signed in at the console. In memory only, and of each session only the SHA-256 of what its browser bears: a restart ends them all,
 * and nothing that is kept could be used by somebody else. Bounded: who signs in for ever pushes out own sessions first.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Access, Caller } from "./caller.js";

export const SESSION_AGE_MAX_MS = 8 * 3_600_000;
export const SESSION_IDLE_MAX_MS = 3_600_000;
export const SESSION_COUNT_MAX = 256;
export const SESSIONS_OF_TOKEN_MAX = 16;

const SECRET_BYTES = 32;
/** So many bytes in base64url. */
const SECRET_PATTERN = /^[A-Za-z0-9_-]{43}$/;

/** Whatever the token is good for: the page changes nothing. */
const ACCESSES: readonly Access[] = ["public", "read"];

/** Whoever knows tokens. */
export interface SignInTokens {
  /** Undefined when nobody is known by it. */
  callerOfToken(token: string): Caller | undefined;
  /** Whether that caller's token is still good, and for the same. */
  knows(caller: Caller): boolean;
}

export interface Session {
  /** What requests with its cookie may do. */
  readonly caller: Caller;
  readonly endsInMs: number;
}

interface Kept {
  readonly digest: Buffer;
  readonly ofToken: Caller;
  readonly caller: Caller;
  readonly begunAtMs: number;
  usedAtMs: number;
}

export class Sessions {
  readonly #tokens: SignInTokens;
  readonly #nowMs: () => number;
  #kept: readonly Kept[] = [];

  /** @param nowMs a clock that never goes back; another one is for tests. */
  constructor(tokens: SignInTokens, nowMs: () => number = () => performance.now()) {
    this.#tokens = tokens;
    this.#nowMs = nowMs;
  }

  /** Who bears the token, signed in or not; undefined when nobody is known by it. */
  callerOfToken(token: string): Caller | undefined {
    return this.#tokens.callerOfToken(token);
  }

  /** Begins a session for who bears a token, and answers its secret: 256 random bits that are kept nowhere else. */
  begin(ofToken: Caller): string {
    this.#forgetEnded();
    const secret = randomBytes(SECRET_BYTES).toString("base64url");
    const { tokenId, accesses, namespaces } = ofToken;
    const caller = { tokenId, accesses: new Set(ACCESSES.filter((access) => accesses.has(access))), namespaces };
    const nowMs = this.#nowMs();
    const own = this.#kept.filter((kept) => kept.ofToken === ofToken);
    // Whoever has too many of their own makes no room at the cost of others.
    const pushedOut = new Set(
      own.length < SESSIONS_OF_TOKEN_MAX
        ? longestIdle(this.#kept, SESSION_COUNT_MAX - 1)
        : longestIdle(own, SESSIONS_OF_TOKEN_MAX - 1),
    );
    const begun = { digest: digestOf(secret), ofToken, caller, begunAtMs: nowMs, usedAtMs: nowMs };
    this.#kept = [...this.#kept.filter((kept) => !pushedOut.has(kept)), begun];
    return secret;
  }

  /** The session of a secret, which is used by that; undefined when there is none, or no more. */
  use(secret: string): Session | undefined {
    const kept = this.#find(secret);
    if (kept === undefined || !this.#isGood(kept)) return undefined;
    kept.usedAtMs = this.#nowMs();
    return { caller: kept.caller, endsInMs: kept.begunAtMs + SESSION_AGE_MAX_MS - kept.usedAtMs };
  }

  /** Whether a session's caller of before is still signed in. Uses nothing. */
  knows(caller: Caller): boolean {
    const kept = this.#kept.find((one) => one.caller === caller);
    return kept !== undefined && this.#isGood(kept);
  }

  /** Ends the session of a secret. Answers whose it was; undefined when there was none. */
  end(secret: string): Caller | undefined {
    const ended = this.#find(secret);
    this.#kept = this.#kept.filter((kept) => kept !== ended);
    return ended?.caller;
  }

  get count(): number {
    this.#forgetEnded();
    return this.#kept.length;
  }

  #find(secret: string): Kept | undefined {
    if (!SECRET_PATTERN.test(secret)) return undefined;
    const digest = digestOf(secret);
    let found: Kept | undefined;
    for (const kept of this.#kept) {
      // No early end: how long it takes must not tell how far down the list a guess came.
      if (timingSafeEqual(kept.digest, digest)) found = kept;
    }
    return found;
  }

  #isGood({ ofToken, begunAtMs, usedAtMs }: Kept): boolean {
    const nowMs = this.#nowMs();
    const isYoung = nowMs - begunAtMs < SESSION_AGE_MAX_MS && nowMs - usedAtMs < SESSION_IDLE_MAX_MS;
    return isYoung && this.#tokens.knows(ofToken);
  }

  #forgetEnded(): void {
    this.#kept = this.#kept.filter((kept) => this.#isGood(kept));
  }
}

/** Those that must go so that `countMax` stay. */
function longestIdle(sessions: readonly Kept[], countMax: number): readonly Kept[] {
  const byUse = [...sessions].sort((a, b) => a.usedAtMs - b.usedAtMs);
  return byUse.slice(0, Math.max(0, sessions.length - countMax));
}

function digestOf(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}
