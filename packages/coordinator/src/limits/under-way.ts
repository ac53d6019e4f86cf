/**
 * What is under way at a time: begun, and not ended. The places are shared by all who ask, and nobody may take more of them than are left
 * free: one alone has half, two have a third each, and the last place is for somebody who has none. So whoever takes all they can get keeps
 * nobody else out, and nobody has to say how many others there are. (Switches share the memory of their queues so: dynamic thresholds.)
 *
 * What is answered without a wait is never under way beside anything else; but all that came in one turn of the event loop would be answered in
 * it, and others would wait for that. So a place that was taken in a turn is taken to the end of it.
 *
 * Those who go on asking for more share an eighth of the places by the same rule: all who are let in wait for each other, and so does whoever
 * comes beside them.
 */
import { CoordinatorError } from "../errors.js";
import { Crowds } from "./crowds.js";

/** When those who were turned away may ask again. */
export const OVERLOADED_RETRY_AFTER_MS = 1_000;
export const OVERLOADED_MESSAGE = "more is asked of this coordinator than it can answer; ask again after the pause";

/** What is left of the places for a crowd that stays. `npm run overload` shows what others feel of it. */
const SHARE_OF_CROWD = 1 / 8;

export class UnderWay {
  readonly #placeCount: number;
  readonly #crowds: Pick<Crowds, "note" | "stays">;
  /** What one is told for whom there is no place; for people. */
  readonly message: string;
  /** Of those who have one. */
  readonly #placesOf = new Map<string, number>();
  #takenCount = 0;
  /** Changes with each turn of the event loop in which places are taken. */
  #turn = 0;
  #isTurnUnderWay = false;
  /** Whose work has ended in the turn in which it began. */
  #endedInTurn: string[] = [];

  /**
   * @param placeCount twice what one may have under way who is alone.
   * @param message what one is told for whom there is no place.
   * @param crowds who has fewer places for a while. `NO_CROWDS`: nobody.
   */
  constructor(placeCount: number, message = OVERLOADED_MESSAGE, crowds: Pick<Crowds, "note" | "stays"> = new Crowds()) {
    this.#placeCount = placeCount;
    this.#crowds = crowds;
    this.message = message;
  }

  /** Who is told no counts as turned away. */
  hasPlaceFor(asker: string): boolean {
    const taken = this.#placesOf.get(asker) ?? 0;
    const hasPlace =
      taken < this.#placeCount - this.#takenCount && (taken === 0 || !this.#isTooMuchOfCrowd(asker, taken));
    if (!hasPlace) this.#crowds.note(asker);
    return hasPlace;
  }

  /**
   * Takes a place. Answers what gives it back, not before this turn is over; it may be called again without effect.
   * @throws CoordinatorError `overloaded` when there is none for the asker.
   */
  begin(asker: string): () => void {
    if (!this.hasPlaceFor(asker)) {
      throw new CoordinatorError("overloaded", this.message, { retryAfterMs: OVERLOADED_RETRY_AFTER_MS });
    }
    this.#takenCount++;
    this.#placesOf.set(asker, (this.#placesOf.get(asker) ?? 0) + 1);
    this.#beginTurn();
    const begunIn = this.#turn;
    let isEnded = false;
    return () => {
      if (isEnded) return;
      isEnded = true;
      if (begunIn === this.#turn) this.#endedInTurn.push(asker);
      else this.#end(asker);
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

  #beginTurn(): void {
    if (this.#isTurnUnderWay) return;
    this.#isTurnUnderWay = true;
    setImmediate(() => {
      this.#isTurnUnderWay = false;
      this.#turn++;
      const ended = this.#endedInTurn;
      this.#endedInTurn = [];
      for (const asker of ended) this.#end(asker);
    });
  }

  #isTooMuchOfCrowd(asker: string, taken: number): boolean {
    return taken >= this.#placeCount * SHARE_OF_CROWD - this.#takenCount && this.#crowds.stays(asker);
  }

  #end(asker: string): void {
    this.#takenCount--;
    const left = (this.#placesOf.get(asker) ?? 0) - 1;
    if (left > 0) this.#placesOf.set(asker, left);
    else this.#placesOf.delete(asker);
  }
}
