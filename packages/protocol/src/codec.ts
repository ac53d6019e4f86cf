/**
 * The codec: call numbers to and from their parts, and to and from plain numbers.
 * Pure functions of the layout; no state, no dependency, the same in Node and in a browser.
 * Tables are marked as pure, so that a bundler leaves out the decoder of an importer that only encodes.
 * The hot functions use constants of this module: the compiler of Node 20 does not treat imports as constant, and a decoding with imported
 * tables takes half as long again.
 */
import {
  CALL_NUMBER_BITS,
  CALL_NUMBER_LENGTH,
  type CallNumber,
  type CallNumberParts,
  DIGITS,
  NUMBER_MAX,
  RUN_COUNT,
  RUN_MAX,
  SEQUENCE_COUNT,
  SEQUENCE_MAX,
  SHUFFLE,
  VERSION_MAX,
} from "./layout.js";
import { describe, quote } from "./quoted.js";

export * from "./layout.js";

/**
 * Encodes a version, run and sequence.
 * @throws RangeError when a part is not a whole number within its range.
 */
export function encodeCallNumber(parts: CallNumberParts): CallNumber {
  const { version, run, sequence } = parts;
  return callNumbersOfRun(version, run)(sequence);
}

/**
 * Encodes a plain number in base62: the inverse of `toNumber`. Takes it also as a bigint or as decimal digits without sign, spaces or
 * leading zeros: database drivers return an integer column so.
 * @throws RangeError when `number` is not a whole number from 0 to 2^47 - 1, or is written in another way.
 */
export function fromNumber(number: number | bigint | string): CallNumber {
  const value = typeof number === "bigint" || isNumeral(number) ? Number(number) : number;
  assertWithin("number", value, NUMBER_MAX);
  return encodeNumber(value);
}

/** Whether the text is what JavaScript itself writes for a number. `007` and `1e3` are not: no driver returns them, so they are mistakes. */
function isNumeral(text: unknown): text is string {
  return typeof text === "string" && `${Number(text)}` === text;
}

/**
 * Returns the encoder of one run, which does not check the run again for each sequence.
 * @throws RangeError when `version` or `run` is out of range; the encoder throws the same for a sequence.
 */
export function callNumbersOfRun(version: number, run: number): (sequence: number) => CallNumber {
  assertWithin("version", version, VERSION_MAX);
  assertWithin("run", run, RUN_MAX);
  const first = (version * RUN_COUNT + run) * SEQUENCE_COUNT;
  return (sequence) => {
    assertWithin("sequence", sequence, SEQUENCE_MAX);
    return encodeNumber(shuffle(first + sequence));
  };
}

/** Why a text is not a call number. */
export type CallNumberErrorCode = "wrong_length" | "wrong_character" | "beyond_greatest";

/** A text that encodes no call number. A valid number need not have been issued. */
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
 * Decodes the version, run and sequence of a call number. Every call number has exactly one encoding.
 * @throws CallNumberError `wrong_length`, `wrong_character` or `beyond_greatest` when the text encodes none.
 * @throws TypeError when `text` is not a string.
 */
export function decodeCallNumber(text: string): CallNumberParts {
  const bits = unshuffle(toNumber(text));
  const rest = Math.floor(bits / SEQUENCE_WEIGHT);
  const version = Math.floor(rest / RUN_WEIGHT);
  return { version, run: rest - version * RUN_WEIGHT, sequence: bits - rest * SEQUENCE_WEIGHT };
}

/**
 * Decodes a call number to its plain number, 0 to 2^47 - 1: a safe integer, the compact form for a database.
 * @throws CallNumberError and TypeError as `decodeCallNumber`.
 */
export function toNumber(text: string): number {
  const number = numberIn(text);
  if (number === NONE) throw decodingError(text);
  return number;
}

/** Whether `text` encodes a call number; not whether it was ever issued. */
export function isCallNumber(text: unknown): text is CallNumber {
  return numberIn(text) !== NONE;
}

/** The plain number of a text, or `NONE`. An error is made only for a caller that throws it, because its stack takes microseconds. */
function numberIn(text: unknown): number {
  if (typeof text !== "string" || text.length !== LENGTH) return NONE;
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
  // One check for all eight: the union of their bits shows whether one of them is no digit.
  if ((digit0 | digit1 | digit2 | digit3 | digit4 | digit5 | digit6 | digit7) === NO_DIGIT) return NONE;
  const firstHalf = ((digit0 * base + digit1) * base + digit2) * base + digit3;
  const secondHalf = ((digit4 * base + digit5) * base + digit6) * base + digit7;
  const number = firstHalf * HALF_COUNT + secondHalf;
  return number > GREATEST ? NONE : number;
}

/**
 * Returns `version · 2^30 + run` of the call number whose eight ASCII characters start at `offset`, or -1 where they encode none. For
 * readers of millions: accepts what `decodeCallNumber` accepts, and allocates nothing.
 */
export function runInBytes(bytes: Uint8Array, offset: number): number {
  let number = 0;
  for (let position = offset; position < offset + LENGTH; position++) {
    // Past the end of the bytes there is no code.
    const digit = digitOfCode[bytes[position] ?? 0] as number;
    if (digit === NO_DIGIT) return NONE;
    number = number * DIGIT_COUNT + digit;
  }
  return number > GREATEST ? NONE : Math.floor(unshuffle(number) / SEQUENCE_WEIGHT);
}

/** In place of a number or run, where no call number is encoded. */
const NONE = -1;

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
const digitOfCode = /* @__PURE__ */ digitTable();

const PAIR_COUNT = DIGIT_COUNT ** 2;
const pairs = /* @__PURE__ */ Array.from({ length: PAIR_COUNT }, (_, pair) => {
  return DIGITS.charAt(Math.floor(pair / DIGIT_COUNT)) + DIGITS.charAt(pair % DIGIT_COUNT);
});

/** Of one byte. */
const BYTE_VALUES = 256;
const shuffleTables = /* @__PURE__ */ [0, 1, 2, 3, 4, 5].map((byte) => byteTable(byte, (bit) => SHUFFLE.indexOf(bit)));

function encodeNumber(number: number): CallNumber {
  const firstHalf = Math.floor(number / HALF_COUNT);
  const secondHalf = number - firstHalf * HALF_COUNT;
  const first = Math.floor(firstHalf / PAIR_COUNT);
  const third = Math.floor(secondHalf / PAIR_COUNT);
  return ((pairs[first] as string) +
    pairs[firstHalf - first * PAIR_COUNT] +
    pairs[third] +
    pairs[secondHalf - third * PAIR_COUNT]) as CallNumber;
}

function shuffle(bits: number): number {
  let number = 0;
  let rest = bits;
  for (const table of shuffleTables) {
    const higher = Math.floor(rest / BYTE_VALUES);
    number += table[rest - higher * BYTE_VALUES] as number;
    rest = higher;
  }
  return number;
}

/** 47 bits do not fit the 32-bit operators: the shuffled number is taken apart at this weight first. */
const LOW_BITS = 24;
const LOW_WEIGHT = 2 ** LOW_BITS;
const byte0Table = /* @__PURE__ */ unshuffleTable(0);
const byte1Table = /* @__PURE__ */ unshuffleTable(1);
const byte2Table = /* @__PURE__ */ unshuffleTable(2);
const byte3Table = /* @__PURE__ */ unshuffleTable(3);
const byte4Table = /* @__PURE__ */ unshuffleTable(4);
const byte5Table = /* @__PURE__ */ unshuffleTable(5);

/** The 47 bits in their order before the shuffle: `version`, `run`, `sequence`. The argument must be in range. */
function unshuffle(number: number): number {
  const high = Math.floor(number / LOW_WEIGHT);
  const low = number - high * LOW_WEIGHT;
  // In pairs, so that no sum waits for all before it.
  const lowest = (byte0Table[low & 0xff] as number) + (byte1Table[(low >>> 8) & 0xff] as number);
  const middle = (byte2Table[low >>> 16] as number) + (byte3Table[high & 0xff] as number);
  const highest = (byte4Table[(high >>> 8) & 0xff] as number) + (byte5Table[high >>> 16] as number);
  return lowest + middle + highest;
}

function unshuffleTable(byte: number): Float64Array {
  return byteTable(byte, (bit) => SHUFFLE[bit] as number);
}

/**
 * Returns the table of one byte of a shuffle, byte 0 the least significant. An entry holds the bits of the byte in their places in the output.
 * Bytes never share an output bit, so a plain sum of entries is the number: exact in doubles, without a BigInt or a loop over bits.
 * `destination` counts bits from the most significant, as the layout does. The 48th bit of six bytes is never set.
 */
function byteTable(byte: number, destination: (bit: number) => number): Float64Array {
  const sums = new Float64Array(BYTE_VALUES);
  for (let value = 1; value < BYTE_VALUES; value++) {
    const highestBit = 31 - Math.clz32(value);
    const weight = 2 ** (CALL_NUMBER_BITS - 1 - destination(CALL_NUMBER_BITS - 1 - 8 * byte - highestBit));
    sums[value] = weight + (sums[value - 2 ** highestBit] as number);
  }
  return sums;
}

function digitTable(): Uint8Array {
  const digits = new Uint8Array(2 ** 16).fill(NO_DIGIT);
  for (let digit = 0; digit < DIGIT_COUNT; digit++) digits[DIGITS.charCodeAt(digit)] = digit;
  return digits;
}

/** Slow, so separate from the hot functions. */
function decodingError(text: unknown): Error {
  if (typeof text !== "string") return new TypeError(`a call number is a string, not ${describe(text)}`);
  if (text.length !== LENGTH) return wrongLength(text);
  for (let position = 0; position < LENGTH; position++) {
    if (digitOfCode[text.charCodeAt(position)] === NO_DIGIT) return wrongCharacter(text, position);
  }
  const message = `${quote(text)} is not a call number: the greatest call number is ${fromNumber(GREATEST)}`;
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

function assertWithin(name: string, value: number, max: number): void {
  if (!(Number.isInteger(value) && value >= 0 && value <= max)) {
    throw new RangeError(`${name} must be a whole number from 0 to ${max}, not ${describe(value)}`);
  }
}
