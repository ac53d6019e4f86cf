/**
 * Token buckets: how many runs each key (a token, a holder) may take, so many at once and so many a second after that. Pure: the clock is
 * passed in. Keeps one number for each key that owes something, and forgets the key when nothing is owed any more.
 */

/** How many runs one token or one holder may take. */
export interface Allowance {
  /** What may be taken at once: whole, 1 or more. */
  readonly atOnce: number;
  /** By what it grows again, above 0. */
  readonly perSecond: number;
}

const SWEEP_EVERY_MS = 1_000;
/** A rounding error must not cost a run. */
const ROUNDING = 1e-6;
/** Shared by the keys for which there is no room. No key is empty. */
const SHARED = "";

export class TokenBuckets {
  readonly #allowance: Allowance;
  readonly #keyCountMax: number;
  /** By key: when nothing is owed any more. */
  readonly #freeAtMs = new Map<string, number>();
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  /**
   * @param keyCountMax how many keys are kept apart. A key that owes something stays, however many others come: when there is no room, new
   *   ones share a bucket.
   */
  constructor(allowance: Allowance, keyCountMax: number) {
    this.#allowance = allowance;
    this.#keyCountMax = keyCountMax;
  }

  /** How many keys are kept. */
  get keyCount(): number {
    return this.#freeAtMs.size;
  }

  /** How many, whole, may be taken now. */
  available(key: string, nowMs: number): number {
    const { atOnce, perSecond } = this.#allowance;
    return Math.max(
      Math.floor(atOnce - (this.#owedMs(this.#bucketOf(key, nowMs), nowMs) * perSecond) / 1_000 + ROUNDING),
      0,
    );
  }

  /** How long until one may be taken, whole ms; 0 when it may be now. */
  untilOneMs(key: string, nowMs: number): number {
    const { atOnce, perSecond } = this.#allowance;
    const oneAtMs = ((atOnce - 1) * 1_000) / perSecond;
    return Math.max(Math.ceil(this.#owedMs(this.#bucketOf(key, nowMs), nowMs) - oneAtMs - ROUNDING), 0);
  }

  /** Takes `count`; a negative one gives back what was taken and not used. */
  take(key: string, count: number, nowMs: number): void {
    const bucket = this.#bucketOf(key, nowMs);
    const owedMs = this.#owedMs(bucket, nowMs) + (count * 1_000) / this.#allowance.perSecond;
    if (owedMs > 0) this.#freeAtMs.set(bucket, nowMs + owedMs);
    else this.#freeAtMs.delete(bucket);
  }

  #owedMs(bucket: string, nowMs: number): number {
    return Math.max((this.#freeAtMs.get(bucket) ?? nowMs) - nowMs, 0);
  }

  #bucketOf(key: string, nowMs: number): string {
    if (this.#freeAtMs.has(key)) return key;
    // Not for every request of a flood.
    if (this.#freeAtMs.size >= this.#keyCountMax && nowMs - this.#sweptAtMs >= SWEEP_EVERY_MS) {
      this.#sweptAtMs = nowMs;
      for (const [one, freeAtMs] of this.#freeAtMs) if (freeAtMs <= nowMs) this.#freeAtMs.delete(one);
    }
    return this.#freeAtMs.size < this.#keyCountMax ? key : SHARED;
  }
}
