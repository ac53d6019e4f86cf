/**
 * The codec: call numbers to and from their parts, and to and from plain numbers.
 * Pure functions of the layout; no state, no dependency, the same in Node and in a browser.
 */
import {
  CALL_NUMBER_LENGTH,
  DIGITS,
  NUMBER_MAX,
  RUN_COUNT,
  RUN_MAX,
  SEQUENCE_COUNT,
  SEQUENCE_MAX,
  VERSION_MAX,
} from "./layout.js";
import { shuffledRun, shuffledSequence, unshuffle } from "./shuffle.js";

export {
  CALL_NUMBER_BITS,
  CALL_NUMBER_LENGTH,
  DIGITS,
  NUMBER_MAX,
  RUN_BITS,
  RUN_COUNT,
  RUN_MAX,
  SEQUENCE_BITS,
  SEQUENCE_COUNT,
  SEQUENCE_MAX,
  SHUFFLE,
  VERSION_BITS,
  VERSION_COUNT,
  VERSION_MAX,
} from "./layout.js";

/** Eight characters that the codec made or accepted. Compare them byte for byte: `a` and `A` are different digits. */
export type CallNumber = string & { readonly __brand: "CallNumber" };

/** What a call number stands for. */
export interface CallNumberParts {
  /** 0 to 7. */
  readonly version: number;
  /** 0 to 2^30 - 1. */
  readonly run: number;
  /** 0 to 16,383. */
  readonly sequence: number;
}

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
 * The call number of a version, run and sequence.
 * @throws RangeError when a part is not a whole number within its range.
 */
export function encodeCallNumber(parts: CallNumberParts): CallNumber {
  const { version, run, sequence } = parts;
  mustBeWithin("version", version, VERSION_MAX);
  mustBeWithin("run", run, RUN_MAX);
  mustBeWithin("sequence", sequence, SEQUENCE_MAX);
  return spell(shuffledRun(version, run) + shuffledSequence(sequence));
}

/**
 * The version, run and sequence of a call number. Every call number has exactly one spelling.
 * @throws CallNumberError `wrong_length`, `wrong_character` or `beyond_greatest` when no call number is spelt so.
 * @throws TypeError when `text` is not a string.
 */
export function decodeCallNumber(text: string): CallNumberParts {
  const bits = unshuffle(toNumber(text));
  const sequence = bits % SEQUENCE_COUNT;
  const rest = (bits - sequence) / SEQUENCE_COUNT;
  const run = rest % RUN_COUNT;
  return { version: (rest - run) / RUN_COUNT, run, sequence };
}

/**
 * The number, 0 to 2^47 - 1, that a call number writes in base62: a safe integer, the compact form for a database.
 * @throws CallNumberError and TypeError as `decodeCallNumber`.
 */
export function toNumber(text: string): number {
  if (typeof text !== "string") throw new TypeError(`a call number is a string, not ${describe(text)}`);
  if (text.length !== CALL_NUMBER_LENGTH) throw wrongLength(text);
  let number = 0;
  for (let position = 0; position < CALL_NUMBER_LENGTH; position++) {
    const digit = digitValues[text.charCodeAt(position)];
    if (digit === undefined || digit < 0) throw wrongCharacter(text, position);
    number = number * DIGITS.length + digit;
  }
  if (number > NUMBER_MAX) {
    throw new CallNumberError(
      "beyond_greatest",
      `${quote(text)} stands for nothing: the greatest call number is ${greatest()}`,
    );
  }
  return number;
}

/**
 * The call number that writes `number` in base62: the inverse of `toNumber`.
 * @throws RangeError when `number` is not a whole number from 0 to 2^47 - 1.
 */
export function fromNumber(number: number): CallNumber {
  mustBeWithin("number", number, NUMBER_MAX);
  return spell(number);
}

/**
 * For a reader of millions: `version · 2^30 + run` of the call number whose eight ASCII characters begin at `offset`, or -1 when
 * none is spelt there. Accepts what `decodeCallNumber` accepts, and allocates nothing.
 */
export function runInBytes(bytes: Uint8Array, offset: number): number {
  let number = 0;
  for (let position = offset; position < offset + CALL_NUMBER_LENGTH; position++) {
    const digit = digitValues[bytes[position] as number];
    if (digit === undefined || digit < 0) return -1;
    number = number * DIGITS.length + digit;
  }
  return number > NUMBER_MAX ? -1 : Math.floor(unshuffle(number) / SEQUENCE_COUNT);
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

/**
 * For a minter: the call numbers of one run by sequence, without checking the run again for each number.
 * @throws RangeError when `version` or `run` is out of range; the answer throws the same for a sequence.
 */
export function callNumbersOfRun(version: number, run: number): (sequence: number) => CallNumber {
  mustBeWithin("version", version, VERSION_MAX);
  mustBeWithin("run", run, RUN_MAX);
  const runPart = shuffledRun(version, run);
  return (sequence) => {
    mustBeWithin("sequence", sequence, SEQUENCE_MAX);
    return spell(runPart + shuffledSequence(sequence));
  };
}

const PAIR_COUNT = DIGITS.length ** 2;
const pairs = Array.from({ length: PAIR_COUNT }, (_, pair) => {
  const low = pair % DIGITS.length;
  return DIGITS.charAt((pair - low) / DIGITS.length) + DIGITS.charAt(low);
});
const digitValues = Int8Array.from({ length: 128 }, (_, code) => DIGITS.indexOf(String.fromCharCode(code)));

function spell(number: number): CallNumber {
  const fourth = number % PAIR_COUNT;
  const upToThird = (number - fourth) / PAIR_COUNT;
  const third = upToThird % PAIR_COUNT;
  const upToSecond = (upToThird - third) / PAIR_COUNT;
  const second = upToSecond % PAIR_COUNT;
  const first = (upToSecond - second) / PAIR_COUNT;
  return ((pairs[first] as string) + pairs[second] + pairs[third] + pairs[fourth]) as CallNumber;
}

function mustBeWithin(name: string, value: number, max: number): void {
  if (!(Number.isInteger(value) && value >= 0 && value <= max)) {
    throw new RangeError(`${name} must be a whole number from 0 to ${max}, not ${describe(value)}`);
  }
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

function greatest(): CallNumber {
  return spell(NUMBER_MAX);
}

/** Quoted, cut short and without control characters: these texts come from strangers and end in terminals and logs. */
function quote(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text).replace(
    /[\p{C}\u2028\u2029]/gu,
    (character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`,
  );
}

function describe(value: unknown): string {
  if (typeof value === "string") return quote(value);
  if (typeof value === "number" || value === null || value === undefined) return String(value);
  return `a value of type ${typeof value}`;
}
