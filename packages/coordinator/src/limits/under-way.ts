/** How many leases and reports may be under way at a time: begun, and not answered. What comes beyond is turned away at once. */
import { CoordinatorError } from "../errors.js";

/** When those who were turned away may ask again. */
export const OVERLOADED_RETRY_AFTER_MS = 1_000;
export const OVERLOADED_MESSAGE = "more is asked of this coordinator than it can answer; ask again after the pause";

export class UnderWay {
  readonly #countMax: number;
  #count = 0;

  constructor(countMax: number) {
    this.#countMax = countMax;
  }

  get isFull(): boolean {
    return this.#count >= this.#countMax;
  }

  /** @throws CoordinatorError `overloaded` when it is full: nothing was begun. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.isFull) {
      throw new CoordinatorError("overloaded", OVERLOADED_MESSAGE, { retryAfterMs: OVERLOADED_RETRY_AFTER_MS });
    }
    this.#count++;
    try {
      return await work();
    } finally {
      this.#count--;
    }
  }
}
