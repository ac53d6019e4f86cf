/**
 * How many leases and reports may be under way at a time: begun, and not answered. What comes beyond is turned away at once.
 *
 * Those let in share a turn of the event loop and wait for each other. A crowd that begins together should be let in, and wait some milliseconds; in a
 * flood, of which most are turned away anyhow, fewer are let in at a time, so that those few have their answer soon.
 */
import { CoordinatorError } from "../errors.js";

/** When those who were turned away may ask again. */
export const OVERLOADED_RETRY_AFTER_MS = 1_000;
export const OVERLOADED_MESSAGE = "more is asked of this coordinator than it can answer; ask again after the pause";

/** In a flood a part of the places is used: one of so many. */
export const FLOOD_PART = 4;
/** A second in which more were turned away than let in makes the next one a flood. Never less than that: fewer places must not make a flood. */
const JUDGED_EVERY_MS = 1_000;

export class UnderWay {
  readonly #countMax: number;
  readonly #now: () => number;
  #count = 0;
  #admittedCount = 0;
  #turnedAwayCount = 0;
  #isFlood = false;
  #judgedAtMs: number;

  /** @param now a clock that only rises, ms. */
  constructor(countMax: number, now: () => number = () => performance.now()) {
    this.#countMax = countMax;
    this.#now = now;
    this.#judgedAtMs = now();
  }

  get isFull(): boolean {
    if (this.#now() - this.#judgedAtMs >= JUDGED_EVERY_MS) this.#judge();
    return this.#count >= (this.#isFlood ? Math.ceil(this.#countMax / FLOOD_PART) : this.#countMax);
  }

  /** Somebody was turned away because it is full. */
  noteTurnedAway(): void {
    this.#turnedAwayCount++;
  }

  /** @throws CoordinatorError `overloaded` when it is full: nothing was begun. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.isFull) {
      this.noteTurnedAway();
      throw new CoordinatorError("overloaded", OVERLOADED_MESSAGE, { retryAfterMs: OVERLOADED_RETRY_AFTER_MS });
    }
    this.#count++;
    this.#admittedCount++;
    try {
      return await work();
    } finally {
      this.#count--;
    }
  }

  #judge(): void {
    this.#isFlood = this.#turnedAwayCount > this.#admittedCount;
    this.#judgedAtMs = this.#now();
    this.#admittedCount = 0;
    this.#turnedAwayCount = 0;
  }
}
