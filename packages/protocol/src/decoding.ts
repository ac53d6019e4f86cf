/**
 * From eight characters to parts and plain numbers, or to what is wrong with them.
 * The tables and limits of the way back stand here, not in `shuffle.ts` and `layout.ts`: what a module imports, the compiler of Node
 * 20 does not take for constant, and a decoding with imported tables takes half as long again.
 */
import type { CallNumber, CallNumberParts } from "./call-number.js";
import { fromNumber } from "./encoding.js";
import { CALL_NUMBER_LENGTH, DIGITS, NUMBER_MAX, RUN_COUNT, SEQUENCE_COUNT } from "./layout.js";
import { describe, quote } from "./quoted.js";
import { unshuffleTables } from "./shuffle.js";

/** Why a text is not a call number. */
export type CallNumberErrorCode = "wrong_length" | "wrong_character" | "beyond_greatest";

/** A text that no call number is spelt like. It says nothing about whether a well-spelt number was ever issued. */
export class CallNumberError extends Error {
  override readonly name = "CallNumberError";

  constructor(
    readonly code: CallNumberErrorCode,
    message: string,
    /** The index of the first wrong character, for `wrong_character`. */
    readonly position?: number,
  ) {
    super(message);
  }
}

/**
 * The version, run and sequence of a call number. Every call number has exactly one spelling.
 * @throws CallNumberError `wrong_length`, `wrong_character` or `beyond_greatest` when no call number is spelt so.
 * @throws TypeError when `text` is not a string.
 */
export function decodeCallNumber(text: string): CallNumberParts {
  const bits = unshuffle(toNumber(text));
  const rest = Math.floor(bits / SEQUENCE_WEIGHT);
  const version = Math.floor(rest / RUN_WEIGHT);
  return { version, run: rest - version * RUN_WEIGHT, sequence: bits - rest * SEQUENCE_WEIGHT };
}

/**
 * The number, 0 to 2^47 - 1, that a call number writes in base62: a safe integer, the compact form for a database.
 * @throws CallNumberError and TypeError as `decodeCallNumber`.
 */
export function toNumber(text: string): number {
  if (typeof text !== "string" || text.length !== LENGTH) throw whyNot(text);
  const digits = digitOfCode;
  const base = DIGIT_COUNT;
  const digit0 = digits[text.charCodeAt(0)] as number;
  const digit1 = digits[text.charCodeAt(1)] as number;
  const digit2 = digits[text.charCodeAt(2)] as number;
  const digit3 = digits[text.charCodeAt(3)] as number;
  const digit4 = digits[text.charCodeAt(4)] as number;
  const digit5 = digits[text.charCodeAt(5)] as number;
  const digit6 = digits[text.charCodeAt(6)] as number;
  const digit7 = digits[text.charCodeAt(7)] as number;
  // One question for all eight: whether one of them is no digit shows in the union of their bits.
  if ((digit0 | digit1 | digit2 | digit3 | digit4 | digit5 | digit6 | digit7) === NO_DIGIT) throw whyNot(text);
  const firstHalf = ((digit0 * base + digit1) * base + digit2) * base + digit3;
  const secondHalf = ((digit4 * base + digit5) * base + digit6) * base + digit7;
  const number = firstHalf * HALF_COUNT + secondHalf;
  if (number > GREATEST) throw whyNot(text);
  return number;
}

/**
 * For a reader of millions: `version · 2^30 + run` of the call number whose eight ASCII characters begin at `offset`, or -1 when
 * none is spelt there. Accepts what `decodeCallNumber` accepts, and allocates nothing.
 */
export function runInBytes(bytes: Uint8Array, offset: number): number {
  let number = 0;
  for (let position = offset; position < offset + LENGTH; position++) {
    // Behind the end of the bytes there is no code.
    const digit = digitOfCode[bytes[position] ?? 0] as number;
    if (digit === NO_DIGIT) return NOT_SPELT;
    number = number * DIGIT_COUNT + digit;
  }
  return number > GREATEST ? NOT_SPELT : Math.floor(unshuffle(number) / SEQUENCE_WEIGHT);
}

/** Whether `text` is spelt like a call number; not whether it was ever issued. */
export function isCallNumber(text: unknown): text is CallNumber {
  if (typeof text !== "string") return false;
  try {
    toNumber(text);
    return true;
  } catch (error) {
    if (error instanceof CallNumberError) return false;
    throw error;
  }
}

/** What `runInBytes` answers where nothing is spelt. */
const NOT_SPELT = -1;

const LENGTH = CALL_NUMBER_LENGTH;
const GREATEST = NUMBER_MAX;
const SEQUENCE_WEIGHT = SEQUENCE_COUNT;
const RUN_WEIGHT = RUN_COUNT;
const DIGIT_COUNT = DIGITS.length;
/** Of four characters: fits the 32-bit operators, as a whole call number does not. */
const HALF_COUNT = DIGIT_COUNT ** 4;

/** No digit has the highest of these bits. */
const NO_DIGIT = 255;
/** For every character code that there is, so that no lookup needs a limit. */
const digitOfCode = new Uint8Array(2 ** 16).fill(NO_DIGIT);
for (let digit = 0; digit < DIGIT_COUNT; digit++) digitOfCode[DIGITS.charCodeAt(digit)] = digit;

/** 47 bits do not fit the 32-bit operators: the shuffled number is taken apart at this weight first. */
const LOW_BITS = 24;
const LOW_WEIGHT = 2 ** LOW_BITS;
const [byte0Table, byte1Table, byte2Table, byte3Table, byte4Table, byte5Table] = unshuffleTables;

/** The 47 bits in their order before the shuffle: `version`, `run`, `sequence`. The argument must be in range. */
function unshuffle(number: number): number {
  const high = Math.floor(number / LOW_WEIGHT);
  const low = number - high * LOW_WEIGHT;
  // In pairs, so that no sum waits for all that stand before it.
  const lowest = (byte0Table[low & 0xff] as number) + (byte1Table[(low >>> 8) & 0xff] as number);
  const middle = (byte2Table[low >>> 16] as number) + (byte3Table[high & 0xff] as number);
  const highest = (byte4Table[(high >>> 8) & 0xff] as number) + (byte5Table[high >>> 16] as number);
  return lowest + middle + highest;
}

/** Slow, and apart from what must be fast. */
function whyNot(text: unknown): Error {
  if (typeof text !== "string") return new TypeError(`a call number is a string, not ${describe(text)}`);
  if (text.length !== LENGTH) return wrongLength(text);
  for (let position = 0; position < LENGTH; position++) {
    if (digitOfCode[text.charCodeAt(position)] === NO_DIGIT) return wrongCharacter(text, position);
  }
  const message = `${quote(text)} stands for nothing: the greatest call number is ${fromNumber(GREATEST)}`;
  return new CallNumberError("beyond_greatest", message);
}

function wrongLength(text: string): CallNumberError {
  const count = `${text.length} ${text.length === 1 ? "character" : "characters"}`;
  return new CallNumberError("wrong_length", `${quote(text)} has ${count}; a call number has ${CALL_NUMBER_LENGTH}`);
}

function wrongCharacter(text: string, position: number): CallNumberError {
  const character = String.fromCodePoint(text.codePointAt(position) as number);
  const message = `${quote(text)} has ${quote(character)} as character ${position + 1}; a call number has only 0-9, A-Z and a-z`;
  return new CallNumberError("wrong_character", message, position);
}
