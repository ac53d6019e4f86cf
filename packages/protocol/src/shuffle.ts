/**
 * The fixed shuffle of 47 bits, both ways, as tables of doubles, one for each eight bits.
 * A table entry holds the bits of one byte of the input in their places in the output. Bytes never share an output bit, so a plain sum
 * of entries puts a number together: exact in doubles, without a BigInt or a loop over bits.
 */
import { CALL_NUMBER_BITS, SHUFFLE } from "./layout.js";

export const BYTE_VALUES = 256;

/** By byte, the least significant first. */
export type ByteTables = readonly [Float64Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array];

export const shuffleTables = tables((inputBit) => SHUFFLE.indexOf(inputBit));
export const unshuffleTables = tables((outputBit) => SHUFFLE[outputBit] as number);

/** Bits are counted from the most significant, as the layout counts them. The 48th bit of six bytes is never set. */
function tables(destination: (bit: number) => number): ByteTables {
  return [0, 8, 16, 24, 32, 40].map((shift) => {
    const sums = new Float64Array(BYTE_VALUES);
    for (let value = 1; value < BYTE_VALUES; value++) {
      const highestBit = 31 - Math.clz32(value);
      const weight = 2 ** (CALL_NUMBER_BITS - 1 - destination(CALL_NUMBER_BITS - 1 - shift - highestBit));
      sums[value] = weight + (sums[value - 2 ** highestBit] as number);
    }
    return sums;
  }) as unknown as ByteTables;
}
