/** The worlds that a search has seen: their fingerprints, and for each how it was reached first. Knows nothing of worlds. */
import type { Fingerprint } from "./fingerprint.js";

const FIRST_CAPACITY = 2 ** 16;
const LOAD_MAX = 0.6;

/** Holds up to 2^31 fingerprints, in 8 bytes each at the load above, and 5 more for the way there. */
export class Visited {
  #slots = new Uint32Array(2 * FIRST_CAPACITY);
  #parents = new Int32Array(FIRST_CAPACITY);
  #steps = new Uint8Array(FIRST_CAPACITY);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /**
   * Remembers a world that was reached from world number `parent` by its step number `step` (0 to 255).
   * Worlds are numbered from 0 in the order of their adding. Answers false when this one was there before.
   */
  add({ high, low }: Fingerprint, parent: number, step: number): boolean {
    // (0, 0) marks a free slot; a world with that fingerprint gets the next one.
    if (!insert(this.#slots, high, low === 0 && high === 0 ? 1 : low)) return false;
    if (this.#count === this.#parents.length) this.#growWays();
    this.#parents[this.#count] = parent;
    this.#steps[this.#count] = step;
    this.#count += 1;
    if (this.#count > (this.#slots.length / 2) * LOAD_MAX) this.#growSlots();
    return true;
  }

  /** The steps that lead from the first world to this one. */
  wayTo(world: number): number[] {
    const way: number[] = [];
    for (let here = world; here > 0; here = this.#parents[here] as number) way.push(this.#steps[here] as number);
    return way.reverse();
  }

  #growWays(): void {
    const parents = new Int32Array(2 * this.#parents.length);
    parents.set(this.#parents);
    this.#parents = parents;
    const steps = new Uint8Array(2 * this.#steps.length);
    steps.set(this.#steps);
    this.#steps = steps;
  }

  #growSlots(): void {
    const old = this.#slots;
    this.#slots = new Uint32Array(2 * old.length);
    for (let slot = 0; slot < old.length; slot += 2) {
      const [high, low] = [old[slot] as number, old[slot + 1] as number];
      if (high !== 0 || low !== 0) insert(this.#slots, high, low);
    }
  }
}

function insert(slots: Uint32Array, high: number, low: number): boolean {
  const mask = slots.length / 2 - 1;
  for (let place = low & mask; ; place = (place + 1) & mask) {
    const slot = 2 * place;
    if (slots[slot] === high && slots[slot + 1] === low) return false;
    if (slots[slot] === 0 && slots[slot + 1] === 0) {
      slots[slot] = high;
      slots[slot + 1] = low;
      return true;
    }
  }
}
