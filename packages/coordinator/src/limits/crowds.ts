/**
 * Who asks for more than it gets for longer than a moment. A crowd that begins together is answered in a moment, and may wait for each other;
 * where it stays, those who wait make each other wait, and all who come beside them, and nobody is served sooner for it. Pure but for the clock.
 */

/** A whole crowd at the default of places is answered within it. */
const MOMENT_MS = 100;
/** Nobody of the crowd was turned away for so long: it is gone. As long as those who were are told to stay away. */
const OVER_AFTER_MS = 1_000;
/** Crowds that are over are forgotten when there are more. Those that are not ask on, and each has a token or an address. */
const REMEMBERED_MAX = 1_000;

/** For places that are held by what nobody waits for, as long as whoever has one likes: fewer of them would serve nobody sooner. */
export const NO_CROWDS: Pick<Crowds, "note" | "stays"> = { note: () => {}, stays: () => false };

interface Crowd {
  readonly sinceMs: number;
  readonly lastMs: number;
}

export class Crowds {
  readonly #nowMs: () => number;
  /** Those of whom one was turned away last stand last. */
  readonly #byAsker = new Map<string, Crowd>();

  /** @param nowMs a clock that never goes back. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** One of these is turned away. */
  note(asker: string): void {
    const nowMs = this.#nowMs();
    const sinceMs = this.#standing(asker, nowMs)?.sinceMs ?? nowMs;
    this.#byAsker.delete(asker);
    this.#byAsker.set(asker, { sinceMs, lastMs: nowMs });
    if (this.#byAsker.size > REMEMBERED_MAX) this.#forget(nowMs);
  }

  /** Whether some of these were turned away, and, a moment later, some again. */
  stays(asker: string): boolean {
    if (this.#byAsker.size === 0) return false;
    const crowd = this.#standing(asker, this.#nowMs());
    return crowd !== undefined && crowd.lastMs - crowd.sinceMs > MOMENT_MS;
  }

  get rememberedCount(): number {
    return this.#byAsker.size;
  }

  #standing(asker: string, nowMs: number): Crowd | undefined {
    const crowd = this.#byAsker.get(asker);
    return crowd !== undefined && nowMs - crowd.lastMs <= OVER_AFTER_MS ? crowd : undefined;
  }

  #forget(nowMs: number): void {
    for (const [asker, { lastMs }] of this.#byAsker) {
      // A flood from many networks is noted as often as it is turned away: no walk over all of them each time.
      if (nowMs - lastMs <= OVER_AFTER_MS) return;
      this.#byAsker.delete(asker);
    }
  }
}
