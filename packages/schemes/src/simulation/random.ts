/**
 * Random numbers that are the same every time for the same seed: Doty-Humphrey's sfc32, which passes PractRand. Park and Miller's generator
 * would not do: it returns each of its values once before any of them again, so no two draws are ever the same.
 */
import type { Random } from "../scheme.js";

export interface SeededRandom extends Random {
  /** The time to the next of events that come at random moments, `mean` apart on average. */
  gap(mean: number): number;
}

/** Each text has a stream of its own, so drawing from one does not change another. */
export function seededRandom(seedText: string): SeededRandom {
  const next = sfc32(seedText);
  const below53 = (): number => (next() >>> 11) * WORD + next();
  return {
    below: (bound) => (bound <= WORD ? uniformBelow(bound, next, WORD) : uniformBelow(bound, below53, EXACT_BELOW)),
    gap: (mean) => -mean * Math.log((below53() + 1) / EXACT_BELOW),
  };
}

const WORD = 2 ** 32;
export const EXACT_BELOW = 2 ** 53;
/** After so many steps the seed has reached every bit. */
const WARM_UP_STEP_COUNT = 20;

/**
 * Returns a number below `bound` from draws below `drawnBelow`, each with the same chance. Values beyond the last whole multiple of `bound`
 * are drawn again; else small values would come more often.
 */
export function uniformBelow(bound: number, draw: () => number, drawnBelow: number): number {
  const end = drawnBelow - (drawnBelow % bound);
  for (;;) {
    const value = draw();
    if (value < end) return value % bound;
  }
}

function sfc32(seedText: string): () => number {
  let [a, b, c] = [hash(seedText, 1), hash(seedText, 2), hash(seedText, 3)];
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

/** FNV-1a with the finish of MurmurHash3: similar texts have very different hashes. */
function hash(text: string, start: number): number {
  let value = Math.imul(start, 0x9e3779b1) ^ 0x811c9dc5;
  for (let index = 0; index < text.length; index++) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return value ^ (value >>> 16);
}
