/**
 * What is under way at a time: begun, and not ended. The places are shared by all who ask, and nobody may take more of them than are left
 * free: one alone has half, two have a third each, and the last place is for somebody who has none. So whoever takes all they can get keeps
 * nobody else out, and nobody has to say how many others there are. (Switches share the memory of their queues so: dynamic thresholds.)
 */
import { CoordinatorError } from "../errors.js";

/** When those who were turned away may ask again. */
export const OVERLOADED_RETRY_AFTER_MS = 1_000;
export const OVERLOADED_MESSAGE = "more is asked of this coordinator than it can answer; ask again after the pause";

export class UnderWay {
  readonly #placeCount: number;
  /** What one is told for whom there is no place; for people. */
  readonly message: string;
  /** Of those who have one. */
  readonly #placesOf = new Map<string, number>();
  #takenCount = 0;

  /** @param placeCount twice what one may have under way who is alone. */
  constructor(placeCount: number, message = OVERLOADED_MESSAGE) {
    this.#placeCount = placeCount;
    this.message = message;
  }

  hasPlaceFor(asker: string): boolean {
    return (this.#placesOf.get(asker) ?? 0) < this.#placeCount - this.#takenCount;
  }

  /**
   * Takes a place. Answers what gives it back, which may be called again without effect.
   * @throws CoordinatorError `overloaded` when there is none for the asker.
   */
  begin(asker: string): () => void {
    if (!this.hasPlaceFor(asker)) {
      throw new CoordinatorError("overloaded", this.message, { retryAfterMs: OVERLOADED_RETRY_AFTER_MS });
    }
    this.#takenCount++;
    this.#placesOf.set(asker, (this.#placesOf.get(asker) ?? 0) + 1);
    let isEnded = false;
    return () => {
      if (isEnded) return;
      isEnded = true;
      this.#end(asker);
    };
  }

  /** @throws CoordinatorError `overloaded` as `begin`: nothing was begun. */
  async run<T>(asker: string, work: () => Promise<T>): Promise<T> {
    const end = this.begin(asker);
    try {
      return await work();
    } finally {
      end();
    }
  }

  #end(asker: string): void {
    this.#takenCount--;
    const left = (this.#placesOf.get(asker) ?? 0) - 1;
    if (left > 0) this.#placesOf.set(asker, left);
    else this.#placesOf.delete(asker);
  }
}
