/**
 * How often somebody may try to sign in: what keeps guessers out are the 256 bits of a token; this keeps them from costing anything.
 * Counted by address, so that one who tries for ever keeps nobody else from signing in. Memory is bounded.
 */

/** At once, and after a rest long enough. */
export const ATTEMPT_COUNT_MAX = 10;
const ONE_MORE_AFTER_MS = 6_000;
export const ADDRESS_COUNT_MAX = 1_000;

interface Tries {
  /** May be below a whole one. */
  left: number;
  atMs: number;
}

export class SignInAttempts {
  readonly #nowMs: () => number;
  /** Who tried last stands last. */
  readonly #triesOf = new Map<string, Tries>();

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Counts an attempt. Answers how long this address must wait before it may try, in ms: 0 when it may now. */
  take(address: string): number {
    const nowMs = this.#nowMs();
    const before = this.#triesOf.get(address) ?? { left: ATTEMPT_COUNT_MAX, atMs: nowMs };
    const left = Math.min(ATTEMPT_COUNT_MAX, before.left + (nowMs - before.atMs) / ONE_MORE_AFTER_MS);
    const mayTry = left >= 1;
    this.#triesOf.delete(address);
    this.#triesOf.set(address, { left: mayTry ? left - 1 : left, atMs: nowMs });
    const [oldest] = this.#triesOf.keys();
    if (this.#triesOf.size > ADDRESS_COUNT_MAX && oldest !== undefined) this.#triesOf.delete(oldest);
    return mayTry ? 0 : Math.ceil((1 - left) * ONE_MORE_AFTER_MS);
  }
}
