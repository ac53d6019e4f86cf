/** From parts and plain numbers to the eight characters. */
import type { CallNumber, CallNumberParts } from "./call-number.js";
import { DIGITS, NUMBER_MAX, RUN_COUNT, RUN_MAX, SEQUENCE_COUNT, SEQUENCE_MAX, VERSION_MAX } from "./layout.js";
import { describe } from "./quoted.js";
import { BYTE_VALUES, shuffleTables } from "./shuffle.js";

/**
 * The call number of a version, run and sequence.
 * @throws RangeError when a part is not a whole number within its range.
 */
export function encodeCallNumber(parts: CallNumberParts): CallNumber {
  const { version, run, sequence } = parts;
  return callNumbersOfRun(version, run)(sequence);
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
 * For a minter: the call numbers of one run by sequence, without checking the run again for each number.
 * @throws RangeError when `version` or `run` is out of range; the answer throws the same for a sequence.
 */
export function callNumbersOfRun(version: number, run: number): (sequence: number) => CallNumber {
  mustBeWithin("version", version, VERSION_MAX);
  mustBeWithin("run", run, RUN_MAX);
  const first = (version * RUN_COUNT + run) * SEQUENCE_COUNT;
  return (sequence) => {
    mustBeWithin("sequence", sequence, SEQUENCE_MAX);
    return spell(shuffle(first + sequence));
  };
}

const DIGIT_COUNT = DIGITS.length;
const PAIR_COUNT = DIGIT_COUNT ** 2;
/** Of four characters: fits the 32-bit operators, as a whole call number does not. */
const HALF_COUNT = DIGIT_COUNT ** 4;
const pairs = Array.from({ length: PAIR_COUNT }, (_, pair) => {
  return DIGITS.charAt(Math.floor(pair / DIGIT_COUNT)) + DIGITS.charAt(pair % DIGIT_COUNT);
});

function spell(number: number): CallNumber {
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

function mustBeWithin(name: string, value: number, max: number): void {
  if (!(Number.isInteger(value) && value >= 0 && value <= max)) {
    throw new RangeError(`${name} must be a whole number from 0 to ${max}, not ${describe(value)}`);
  }
}
