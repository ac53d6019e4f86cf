/** Whole numbers written in the digits of an alphabet, most significant first: base62 and its kin, of any width, exact. */
import { DIGITS } from "@callnumber/protocol/codec";

/** Digits by rising value; base62 of today. */
export const BASE62 = DIGITS;
export const BASE16 = "0123456789abcdef";
export const BASE2 = "01";

/** `number` in the digits of `alphabet`, with leading zeros up to `width` characters; longer where it does not fit. */
export function inDigits(number: bigint, alphabet: string, width = 1): string {
  const base = BigInt(alphabet.length);
  let text = "";
  for (let rest = number; rest > 0n; rest /= base) text = alphabet.charAt(Number(rest % base)) + text;
  return text.padStart(width, alphabet.charAt(0));
}

/** The number that `text` writes; undefined where a character is no digit of `alphabet`, or there is none at all. */
export function fromDigits(text: string, alphabet: string): bigint | undefined {
  if (text === "") return undefined;
  const base = BigInt(alphabet.length);
  let number = 0n;
  for (const character of text) {
    const digit = alphabet.indexOf(character);
    if (digit < 0) return undefined;
    number = number * base + BigInt(digit);
  }
  return number;
}
