/** The specification of the call number, written as plainly as it can be: BigInt, one bit after the other. */
import { DIGITS, SHUFFLE } from "../src/codec.js";

export function referenceCallNumber(version: number, run: number, sequence: number): string {
  const input = (BigInt(version) << 44n) | (BigInt(run) << 14n) | BigInt(sequence);
  let shuffled = 0n;
  for (const inputBit of SHUFFLE) shuffled = (shuffled << 1n) | ((input >> BigInt(46 - inputBit)) & 1n);
  let text = "";
  for (let digit = 0; digit < 8; digit++) {
    text = DIGITS.charAt(Number(shuffled % 62n)) + text;
    shuffled /= 62n;
  }
  return text;
}
