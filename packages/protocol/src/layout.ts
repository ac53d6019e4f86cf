/**
 * The layout: how 47 bits are divided, shuffled and encoded. Imports nothing.
 * Frozen: call numbers of this layout exist, and a published layout never changes.
 */

/** Eight characters that the codec made or accepted. Compare them byte for byte: `a` and `A` are different digits. */
export type CallNumber = string & { readonly __brand: "CallNumber" };

/** The parts of a call number. */
export interface CallNumberParts {
  /** 0 to 7: which numbering of all runs; not the layout. */
  readonly version: number;
  /** 0 to 2^30 - 1. */
  readonly run: number;
  /** 0 to 16,383. */
  readonly sequence: number;
}

/** Bits of the version. */
export const VERSION_BITS = 3;
/** Bits of the run. */
export const RUN_BITS = 30;
/** Bits of the sequence. */
export const SEQUENCE_BITS = 14;
/** Bits of a call number: 47. */
export const CALL_NUMBER_BITS = VERSION_BITS + RUN_BITS + SEQUENCE_BITS;

/** How many versions there are. */
export const VERSION_COUNT = 2 ** VERSION_BITS;
/** The greatest version. */
export const VERSION_MAX = VERSION_COUNT - 1;

/** Runs of each version. */
export const RUN_COUNT = 2 ** RUN_BITS;
/** The greatest run of a version. */
export const RUN_MAX = RUN_COUNT - 1;

/** Call numbers for each run. */
export const SEQUENCE_COUNT = 2 ** SEQUENCE_BITS;
/** The greatest sequence of a run. */
export const SEQUENCE_MAX = SEQUENCE_COUNT - 1;

/** The greatest number of a call number; `dxlGgaI3` when encoded. */
export const NUMBER_MAX = 2 ** CALL_NUMBER_BITS - 1;

/** Output bit i is input bit SHUFFLE[i]; both counted from the most significant. */
// biome-ignore format: one row per sixteen bits can be compared with the specification by eye
export const SHUFFLE: readonly number[] = [
  3, 15, 20, 26, 6, 25, 23, 0, 16, 41, 18, 46, 42, 32, 31, 34,
  1, 12, 7, 38, 33, 24, 2, 10, 14, 37, 5, 43, 13, 29, 27, 35,
  21, 8, 44, 4, 9, 30, 36, 19, 39, 45, 40, 17, 22, 11, 28,
];

/** Base62, by rising value. */
export const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** Characters of a call number. */
export const CALL_NUMBER_LENGTH = 8;

// A layout that breaks one of these must not load. The message is short because every reader carries it: the line number names the proof.
mustHold(Number.isSafeInteger(NUMBER_MAX)); // call numbers travel as doubles in Lua and JSON
mustHold(DIGITS.length ** CALL_NUMBER_LENGTH > NUMBER_MAX); // every number must fit the eight characters
mustHold(new Set(DIGITS).size === 62); // no two digits may be the same for the decoder
// The shuffle must move each bit to a place of its own, or two numbers would become one.
mustHold(SHUFFLE.length === CALL_NUMBER_BITS && SHUFFLE.every((_, bit) => SHUFFLE.includes(bit)));

function mustHold(proof: boolean): asserts proof {
  if (!proof) throw new Error("the layout is broken");
}
