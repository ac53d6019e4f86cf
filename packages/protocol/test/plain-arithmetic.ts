/**
 * The plain reference once more, in doubles and still one bit after the other: fast enough for tens of millions. Checked against the
 * other one.
 */
import { DIGITS, SHUFFLE } from "../src/codec.js";

/** Places counted from the least significant bit, in the order of the output. */
const inputPlaces = SHUFFLE.map((inputBit) => 46 - inputBit);
const digits = [...DIGITS];

/** The shuffled number. */
export function plainNumber(version: number, run: number, sequence: number): number {
  const input = (version * 2 ** 30 + run) * 2 ** 14 + sequence;
  const high = Math.floor(input / 2 ** 32);
  const low = input - high * 2 ** 32;
  let number = 0;
  for (let output = 0; output < 47; output++) {
    const place = inputPlaces[output] as number;
    const bit = place < 32 ? (low >>> place) & 1 : (high >>> (place - 32)) & 1;
    number = number * 2 + bit;
  }
  return number;
}

export function plainText(number: number): string {
  let text = "";
  let rest = number;
  for (let digit = 0; digit < 8; digit++) {
    const before = Math.floor(rest / 62);
    text = digits[rest - before * 62] + text;
    rest = before;
  }
  return text;
}
