/**
 * The call numbers of one run, many at a time: as text, as bytes, as plain numbers. Pure: the same sequences always give the same numbers.
 *
 * Within a run only the sequence changes, and the shuffle gives it bits of its own: a number is the run's part plus the
 * sequence's part. Cut at 62^4, the upper four characters depend on six bits of the sequence and a carry, so a run has 128
 * upper halves, encoded once; the lower half is one addition and two pairs of digits. All tables come from the plain codec.
 *
 * Guarantees: G9 (docs/guarantees.md).
 *
 * The tables are constants of this module, because the compiler of Node 20 does not treat imports as constant.
 */
import { CALL_NUMBER_LENGTH, DIGITS, encodeCallNumber, SEQUENCE_BITS } from "@callnumber/protocol/codec";

/** The numbers that one text holds. Every client keeps a text: a larger one takes more memory, and is no faster. */
export const TEXT_COUNT_MAX = 512;
/** The most numbers that are encoded at a time: more are slower, because they leave the nearest cache. */
const ENCODED_COUNT_MAX = 2_048;

const PAIR_COUNT = DIGITS.length ** 2;
const HALF_COUNT = DIGITS.length ** 4;
const WORDS_PER_NUMBER = 2;

/** A sequence is looked up in two pieces. */
const PIECE_BITS = SEQUENCE_BITS / 2;
const PIECE_COUNT = 2 ** PIECE_BITS;
const PIECE_MASK = PIECE_COUNT - 1;

const sequenceBitNumbers = Array.from({ length: SEQUENCE_BITS }, (_, bit) => numberOf(0, 0, 2 ** bit));
/** The bits of the sequence that reach the upper half. The others can do so only by a carry. */
const upperBitNumbers = sequenceBitNumbers.filter((number) => number >= HALF_COUNT);
const UPPER_BITS = upperBitNumbers.length;
const UPPER_COUNT = 2 ** UPPER_BITS;
const UPPER_MASK = UPPER_COUNT - 1;
const LOWER_SUM = sumOf(sequenceBitNumbers) - sumOf(upperBitNumbers);
if (LOWER_SUM >= HALF_COUNT) throw new Error("broken invariant: the lower bits of a sequence carry more than once");
if (LOWER_SUM * UPPER_COUNT >= 2 ** 31) throw new Error("broken invariant: a piece does not fit the 32-bit operators");

/** For each value of a piece: what it adds to the lower half, times `UPPER_COUNT`, plus its share of the upper index. */
const highPieces = piecesFrom(PIECE_BITS);
const lowPieces = piecesFrom(0);
/** What the upper bits add to the number, by upper index. */
const upperNumbers = Float64Array.from({ length: UPPER_COUNT }, (_, index) =>
  sumOf(upperBitNumbers.filter((_number, bit) => (index >>> bit) % 2 === 1)),
);
const LOW_PIECE_1 = lowPieces[1] as number;
const LOW_PIECE_2 = lowPieces[2] as number;
const highNumbers = numbersFrom(PIECE_BITS);
const lowNumbers = numbersFrom(0);

/** Two characters in the first, and in the last two bytes of a word of four: in the byte order of the machine. */
const firstPairs = pairWords(0);
const lastPairs = pairWords(2);

/** "-". */
const NO_DIGIT = 0x2d;

/** Of the run that is being encoded: copied each time, because only arrays that never change are looked up without a check. */
const upperWords = new Int32Array(2 * UPPER_COUNT);
const lowerHalves = new Int32Array(UPPER_COUNT);
/** A text ends with its last number, so there is room for a whole text before the first; and its ends may be within pieces. */
const encoded = new Int32Array(WORDS_PER_NUMBER * (TEXT_COUNT_MAX + ENCODED_COUNT_MAX + PIECE_COUNT));
const encodedBytes = Buffer.from(encoded.buffer);

export class RunNumbers {
  readonly #base: number;
  /** By upper index and carry. */
  readonly #upperWords = new Int32Array(2 * UPPER_COUNT);
  /** By upper index: the run's part and the upper bits' part below the cut. */
  readonly #lowerHalves = new Int32Array(UPPER_COUNT);

  /** @throws RangeError when `version` or `run` is out of range. */
  constructor(version: number, run: number) {
    this.#base = numberOf(version, run, 0);
    for (let index = 0; index < UPPER_COUNT; index++) {
      const number = this.#base + (upperNumbers[index] as number);
      const upper = Math.floor(number / HALF_COUNT);
      this.#lowerHalves[index] = number - upper * HALF_COUNT;
      this.#upperWords[2 * index] = wordOf(upper);
      this.#upperWords[2 * index + 1] = wordOf(upper + 1);
    }
  }

  /**
   * A text of `TEXT_COUNT_MAX` · 8 characters that ends with the call numbers from sequence `from` to before `to`, at most
   * `TEXT_COUNT_MAX` of them. What is before them is not a call number.
   */
  textUpTo(from: number, to: number): string {
    const first = this.#encode(from, to);
    const end = first + to - from;
    const begin = end - TEXT_COUNT_MAX;
    if (begin < first) encodedBytes.fill(NO_DIGIT, begin * CALL_NUMBER_LENGTH, first * CALL_NUMBER_LENGTH);
    return encodedBytes.toString("latin1", begin * CALL_NUMBER_LENGTH, end * CALL_NUMBER_LENGTH);
  }

  /** Writes the call numbers from sequence `from` to before `to`, eight ASCII characters each. @throws when they do not fit. */
  writeBytes(target: Uint8Array, offset: number, from: number, to: number): void {
    for (let begin = from; begin < to; begin += ENCODED_COUNT_MAX) {
      const end = Math.min(begin + ENCODED_COUNT_MAX, to);
      const first = this.#encode(begin, end);
      const bytes = encodedBytes.subarray(first * CALL_NUMBER_LENGTH, (first + end - begin) * CALL_NUMBER_LENGTH);
      target.set(bytes, offset + (begin - from) * CALL_NUMBER_LENGTH);
    }
  }

  /** Writes the plain numbers from sequence `from` to before `to`, as `toNumber` gives them. The target must hold them. */
  writeNumbers(target: Float64Array, offset: number, from: number, to: number): void {
    const base = this.#base;
    for (let sequence = from; sequence < to; sequence++) {
      const high = highNumbers[sequence >>> PIECE_BITS] as number;
      target[offset + sequence - from] = base + high + (lowNumbers[sequence & PIECE_MASK] as number);
    }
  }

  /**
   * Encodes at least the numbers from sequence `from` to before `to`, at most `ENCODED_COUNT_MAX`: whole pieces, because a loop that always
   * runs the same way is the fastest. Returns the place of the first one in `encoded`, in numbers.
   */
  #encode(from: number, to: number): number {
    upperWords.set(this.#upperWords);
    lowerHalves.set(this.#lowerHalves);
    const firstPiece = from >>> PIECE_BITS;
    for (let piece = firstPiece; piece << PIECE_BITS < to; piece++) {
      encodePiece(highPieces[piece] as number, TEXT_COUNT_MAX + ((piece - firstPiece) << PIECE_BITS));
    }
    return TEXT_COUNT_MAX + (from & PIECE_MASK);
  }
}

/** Encodes all numbers with the same high piece of their sequence. `first` is their place in `encoded`, in numbers. */
function encodePiece(highPiece: number, first: number): void {
  let at = (first * WORDS_PER_NUMBER) | 0;
  // Four in a row differ in the two lowest bits of the sequence only.
  for (let low = 0; low < PIECE_COUNT; low += 4) {
    const sum0 = (highPiece + (lowPieces[low] as number)) | 0;
    const sum2 = (sum0 + LOW_PIECE_2) | 0;
    encodeOne(sum0, at);
    encodeOne((sum0 + LOW_PIECE_1) | 0, (at + 2) | 0);
    encodeOne(sum2, (at + 4) | 0);
    encodeOne((sum2 + LOW_PIECE_1) | 0, (at + 6) | 0);
    at = (at + 8) | 0;
  }
}

/** `sum`: of the two pieces of the sequence. */
function encodeOne(sum: number, at: number): void {
  const upper = sum & UPPER_MASK;
  let index = upper << 1;
  let lower = ((lowerHalves[upper] as number) + (sum >>> UPPER_BITS)) | 0;
  if (lower >= HALF_COUNT) {
    lower = (lower - HALF_COUNT) | 0;
    index |= 1;
  }
  const pair = (lower / PAIR_COUNT) | 0;
  encoded[at] = upperWords[index] as number;
  encoded[at + 1] = (firstPairs[pair] as number) | (lastPairs[(lower - Math.imul(pair, PAIR_COUNT)) | 0] as number);
}

function numberOf(version: number, run: number, sequence: number): number {
  let number = 0;
  for (const digit of encodeCallNumber({ version, run, sequence }))
    number = number * DIGITS.length + DIGITS.indexOf(digit);
  return number;
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

/** Of the piece whose least bit is `bit` of the sequence, by its value. */
function piecesFrom(bit: number): Int32Array {
  return Int32Array.from({ length: PIECE_COUNT }, (_, value) =>
    sumOf(
      bitNumbersOf(value, bit).map((number) => {
        const upperBit = upperBitNumbers.indexOf(number);
        return upperBit < 0 ? number * UPPER_COUNT : 2 ** upperBit;
      }),
    ),
  );
}

function numbersFrom(bit: number): Float64Array {
  return Float64Array.from({ length: PIECE_COUNT }, (_, value) => sumOf(bitNumbersOf(value, bit)));
}

/** What the set bits of a piece add to the number. */
function bitNumbersOf(value: number, bit: number): number[] {
  return sequenceBitNumbers.slice(bit, bit + PIECE_BITS).filter((_, index) => (value >>> index) % 2 === 1);
}

/** All pairs of digits, each in two of the four bytes of a word. */
function pairWords(atByte: number): Int32Array {
  const bytes = new Uint8Array(PAIR_COUNT * 4);
  for (let pair = 0; pair < PAIR_COUNT; pair++) {
    bytes[pair * 4 + atByte] = DIGITS.charCodeAt(Math.floor(pair / DIGITS.length));
    bytes[pair * 4 + atByte + 1] = DIGITS.charCodeAt(pair % DIGITS.length);
  }
  return new Int32Array(bytes.buffer);
}

function wordOf(half: number): number {
  const first = Math.floor(half / PAIR_COUNT);
  return (firstPairs[first] as number) | (lastPairs[half - first * PAIR_COUNT] as number);
}
