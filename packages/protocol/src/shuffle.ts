/**
 * The fixed shuffle of 47 bits, both ways, by tables of doubles.
 * Each table entry holds the bits of one piece of the input in their places in the output. Pieces never share an
 * output bit, so a plain sum of entries puts a number together: exact in doubles, without a BigInt or a loop over bits.
 */
import { CALL_NUMBER_BITS, RUN_BITS, SEQUENCE_BITS, SHUFFLE, VERSION_BITS } from "./layout.js";

const RUN_PIECE_BITS = RUN_BITS / 3;
const RUN_PIECE_MASK = 2 ** RUN_PIECE_BITS - 1;
const SEQUENCE_PIECE_BITS = SEQUENCE_BITS / 2;
const SEQUENCE_PIECE_MASK = 2 ** SEQUENCE_PIECE_BITS - 1;

const outputWeights = weights((inputBit) => SHUFFLE.indexOf(inputBit));
const inputWeights = weights((outputBit) => SHUFFLE[outputBit] as number);

const versionTable = table(outputWeights, RUN_BITS + SEQUENCE_BITS, VERSION_BITS);
const runHighTable = table(outputWeights, SEQUENCE_BITS + 2 * RUN_PIECE_BITS, RUN_PIECE_BITS);
const runMiddleTable = table(outputWeights, SEQUENCE_BITS + RUN_PIECE_BITS, RUN_PIECE_BITS);
const runLowTable = table(outputWeights, SEQUENCE_BITS, RUN_PIECE_BITS);
const sequenceHighTable = table(outputWeights, SEQUENCE_PIECE_BITS, SEQUENCE_PIECE_BITS);
const sequenceLowTable = table(outputWeights, 0, SEQUENCE_PIECE_BITS);

/** The part of a shuffled number that all call numbers of one run share. Arguments must be in range. */
export function shuffledRun(version: number, run: number): number {
  return (
    at(versionTable, version) +
    at(runHighTable, run >>> (2 * RUN_PIECE_BITS)) +
    at(runMiddleTable, (run >>> RUN_PIECE_BITS) & RUN_PIECE_MASK) +
    at(runLowTable, run & RUN_PIECE_MASK)
  );
}

/** The part of a shuffled number that the sequence adds to its run's part. The argument must be in range. */
export function shuffledSequence(sequence: number): number {
  return at(sequenceHighTable, sequence >>> SEQUENCE_PIECE_BITS) + at(sequenceLowTable, sequence & SEQUENCE_PIECE_MASK);
}

/**
 * The way back, for the `bits` bits of a shuffled number from `shift` upwards: by their value, the bits that they stand for in
 * their places before the shuffle.
 */
export function unshuffleTable(shift: number, bits: number): Float64Array {
  return table(inputWeights, shift, bits);
}

/** For each bit, counted from the least significant: its weight on the other side. */
function weights(destination: (bitFromTop: number) => number): number[] {
  return Array.from({ length: CALL_NUMBER_BITS }, (_, bitFromBottom) => {
    const bitFromTop = CALL_NUMBER_BITS - 1 - bitFromBottom;
    return 2 ** (CALL_NUMBER_BITS - 1 - destination(bitFromTop));
  });
}

/** All values of the `bits` bits from `shift` upwards, each as the sum of the weights of its set bits. */
function table(bitWeights: readonly number[], shift: number, bits: number): Float64Array {
  const sums = new Float64Array(2 ** bits);
  for (let bit = 0; bit < bits; bit++) {
    const weight = bitWeights[shift + bit] as number;
    for (let value = 2 ** bit; value < 2 ** (bit + 1); value++) sums[value] = weight + at(sums, value - 2 ** bit);
  }
  return sums;
}

function at(sums: Float64Array, index: number): number {
  return sums[index] as number;
}
