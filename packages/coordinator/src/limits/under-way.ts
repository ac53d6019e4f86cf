/**
 * What is under way at a time: begun, and not ended. The places are shared by all who ask, and nobody may take more of them than are left
 * free: one alone has half, two have a third each, and the last place is for somebody who has none. So whoever takes all they can get keeps
 * nobody else out, and nobody has to say how many others there are. (Switches share the memory of their queues so: dynamic thresholds.)
 *
 * What is answered without a wait is never under way beside anything else; but all that came in one turn of the event loop would be answered in
 * it, and others would wait for that. So a place that was taken in a turn is taken to the end of it.
 *
 * Of those who go on asking for more, so many may begin in one turn as are an eighth of the places, shared by the same rule: all who begin in a
 * turn wait for each other, and so does whoever comes beside them. Where leases wait for a store and not for this process, turns are short, and
 * they have all that others have.
 */
import { CoordinatorError } from "../errors.js";
import { Crowds } from "./crowds.js";

/** When those who were turned away may ask again. */
export const OVERLOADED_RETRY_AFTER_MS = 1_000;
export const OVERLOADED_MESSAGE = "more is asked of this coordinator than it can answer; ask again after the pause";

/** What may begin in one turn of crowds that stay, as a part of all places. `npm run overload` shows what others feel of it. */
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
  /** What was begun in this turn, of whomever, and of each. */
  #begunCount = 0;
  readonly #begunOf = new Map<string, number>();
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
    const hasPlace = taken < this.#placeCount - this.#takenCount && !this.#isTooMuchOfCrowd(asker);
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
    this.#begunCount++;
    this.#begunOf.set(asker, (this.#begunOf.get(asker) ?? 0) + 1);
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
      this.#begunCount = 0;
      this.#begunOf.clear();
      const ended = this.#endedInTurn;
      this.#endedInTurn = [];
      for (const asker of ended) this.#end(asker);
    });
  }

  /** One may begin in each turn, however few places there are. */
  #isTooMuchOfCrowd(asker: string): boolean {
    const begun = this.#begunOf.get(asker) ?? 0;
    const left = this.#placeCount * SHARE_OF_CROWD - this.#begunCount;
    return begun > 0 && begun >= left && this.#crowds.stays(asker);
  }

  #end(asker: string): void {
    this.#takenCount--;
    const left = (this.#placesOf.get(asker) ?? 0) - 1;
    if (left > 0) this.#placesOf.set(asker, left);
    else this.#placesOf.delete(asker);
  }
}
