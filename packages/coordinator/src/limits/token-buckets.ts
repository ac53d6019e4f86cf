/**
 * How much each name may take, of runs, answers, attempts: so many at once, and so many a second after that. Pure: the clock is passed in.
 * Keeps one number for each name that owes something, and forgets it when nothing is owed any more.
 */

export interface Allowance {
  /** What may be taken at once: whole, 1 or more. */
  readonly atOnce: number;
  /** By what it grows again, above 0. */
  readonly perSecond: number;
}

/** A full sweep is no work for every request of a flood. */
const SWEEP_EVERY_MS = 1_000;
/** What is left of a division must not cost one. */
const ROUNDING = 1e-6;
/** Shared by those for whom there is no place. No name is empty. */
const REST = "";

export class Buckets {
  readonly #allowance: Allowance;
  readonly #nameCountMax: number;
  /** By name: when nothing is owed any more. */
  readonly #freeAtMs = new Map<string, number>();
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  /** At most `nameCountMax` names are kept apart. */
  constructor(allowance: Allowance, nameCountMax: number) {
    this.#allowance = allowance;
    this.#nameCountMax = nameCountMax;
  }

  /** How many names owe something, as far as was looked at. */
  get nameCount(): number {
    return this.#freeAtMs.size;
  }

  /**
   * The name that is owed under. A name that owes something keeps its place, however many others come: when all places are taken, the
   * others share one.
   */
  placeOf(name: string, nowMs: number): string {
    if (this.#freeAtMs.has(name)) return name;
    if (this.#freeAtMs.size >= this.#nameCountMax) this.#sweep(nowMs);
    return this.#freeAtMs.size < this.#nameCountMax ? name : REST;
  }

  /** How many, whole, may be taken now. */
  available(place: string, nowMs: number): number {
    const { atOnce, perSecond } = this.#allowance;
    return Math.max(Math.floor(atOnce - (this.#owedMs(place, nowMs) * perSecond) / 1_000 + ROUNDING), 0);
  }

  /** How long until one may be taken, whole ms; 0 when it may be now. */
  untilOneMs(place: string, nowMs: number): number {
    const { atOnce, perSecond } = this.#allowance;
    const oneAtMs = ((atOnce - 1) * 1_000) / perSecond;
    return Math.max(Math.ceil(this.#owedMs(place, nowMs) - oneAtMs - ROUNDING), 0);
  }

  take(place: string, count: number, nowMs: number): void {
    this.#owe(place, this.#owedMs(place, nowMs) + this.#msFor(count), nowMs);
  }

  /** What was taken and not used. */
  giveBack(place: string, count: number, nowMs: number): void {
    this.#owe(place, this.#owedMs(place, nowMs) - this.#msFor(count), nowMs);
  }

  #owedMs(place: string, nowMs: number): number {
    return Math.max((this.#freeAtMs.get(place) ?? nowMs) - nowMs, 0);
  }

  #owe(place: string, owedMs: number, nowMs: number): void {
    if (owedMs > 0) this.#freeAtMs.set(place, nowMs + owedMs);
    else this.#freeAtMs.delete(place);
  }

  #msFor(count: number): number {
    return (count * 1_000) / this.#allowance.perSecond;
  }

  #sweep(nowMs: number): void {
    if (nowMs - this.#sweptAtMs < SWEEP_EVERY_MS) return;
    this.#sweptAtMs = nowMs;
    for (const [name, freeAtMs] of this.#freeAtMs) if (freeAtMs <= nowMs) this.#freeAtMs.delete(name);
  }
}
