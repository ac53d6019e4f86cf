/**
 * Chance that is the same every time for the same seed: Doty-Humphrey's sfc32, which passes PractRand. Park and Miller's would not do here: it
 * gives each of its values once before any of them again, so that the birthday never comes.
 */
import type { Random } from "../mint-context.js";

export interface Chance extends Random {
  /** Above 0, up to 1. */
  fraction(): number;
  /** The time to the next of events that come at random moments, `mean` apart on average. */
  gap(mean: number): number;
}

/** A stream of its own for each text: what one draws changes nothing for the others. */
export function chanceOf(seedText: string): Chance {
  const next = sfc32(seedText);
  const below53 = (): number => (next() >>> 11) * WORD + next();
  const fraction = (): number => (below53() + 1) / EXACT_BELOW;
  return {
    below: (bound) => (bound <= WORD ? even(next, WORD, bound) : even(below53, EXACT_BELOW, bound)),
    fraction,
    gap: (mean) => -mean * Math.log(fraction()),
  };
}

const WORD = 2 ** 32;
const EXACT_BELOW = 2 ** 53;
/** So many steps until the seed has reached every bit. */
const WARM_UP_STEP_COUNT = 20;

/** What lies beyond the last whole multiple of `bound` is drawn again: else small values would come more often. */
function even(draw: () => number, drawnBelow: number, bound: number): number {
  const end = drawnBelow - (drawnBelow % bound);
  for (;;) {
    const value = draw();
    if (value < end) return value % bound;
  }
}

function sfc32(seedText: string): () => number {
  let [a, b, c] = [hashed(seedText, 1), hashed(seedText, 2), hashed(seedText, 3)];
  let counter = 1;
  const next = (): number => {
    const drawn = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + drawn;
    return drawn >>> 0;
  };
  for (let step = 0; step < WARM_UP_STEP_COUNT; step++) next();
  return next;
}

/** FNV-1a, begun anywhere, with the finish of MurmurHash3: near texts have far hashes. */
function hashed(text: string, start: number): number {
  let hash = Math.imul(start, 0x9e3779b1) ^ 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
