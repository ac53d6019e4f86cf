/** The encodings that schemes have in common. A rule may read too much: a scheme accepts only a text that the rule writes the same way. */
import { DIGITS } from "@callnumber/protocol/codec";

/** Digits by rising value. */
export const BASE62 = DIGITS;
export const BASE16 = "0123456789abcdef";

/** `own`: as long and in such characters as the scheme has it. `number`: digits, as of many schemes. `former`: no longer, or wrongly, written. */
export type Form = "own" | "number" | "former";

/** How numbers are written as text, and read from it. */
export interface EncodingRule {
  /** As `decimal`, `base62`, `as printed`. */
  readonly name: string;
  readonly form: Form;
  /** What such a text looks like, for the reason why one is none: `8 base62 characters`. */
  readonly looksLike: string;
  /** Undefined where this encoding cannot write the number. */
  write(number: bigint): string | undefined;
  /** Every number that the text may mean, the likeliest first. Must be cheap for a text of any length. */
  read(text: string): readonly bigint[];
}

/** Up to `digitCountMax` decimal digits; without leading zeros, unless `write` adds some. */
export function decimal(
  name: string,
  digitCountMax: number,
  looksLike = `a whole number of up to ${digitCountMax} digits`,
  write: EncodingRule["write"] = String,
): EncodingRule {
  const shape = new RegExp(`^[0-9]{1,${digitCountMax}}$`);
  return { name, form: "number", looksLike, write, read: (text) => (shape.test(text) ? [BigInt(text)] : []) };
}

/** Leading zeros up to exactly `width` digits. */
export function paddedDecimal(name: string, width: number): EncodingRule {
  const rule = decimal(name, width, `${width} decimal digits`, (number) => String(number).padStart(width, "0"));
  return { ...rule, form: "own" };
}

export function base62(name: string, width: number, alphabet = BASE62): EncodingRule {
  return fixedWidth(name, alphabet, width, "", `${width} base${alphabet.length} characters`);
}

export function former(rule: EncodingRule): EncodingRule {
  return { ...rule, form: "former" };
}

/** 64 bits, with `0x` before them, so that they are never taken for a decimal. */
export const hex64 = fixedWidth("hex", BASE16, 16, "0x", "0x and 16 lower-case hex digits");

/** As a signed BIGINT column shows 64 bits: from 2^63 on, negative. */
export const signed64: EncodingRule = {
  name: "signed",
  form: "number",
  looksLike: "a signed whole number of 64 bits",
  write: (number) => String(BigInt.asIntN(64, number)),
  read: (text) => (/^-?[0-9]{1,19}$/.test(text) ? [BigInt.asUintN(64, BigInt(text))] : []),
};

/** Exactly `width` digits of `alphabet` behind `prefix`. */
export function fixedWidth(
  name: string,
  alphabet: string,
  width: number,
  prefix: string,
  looksLike: string,
): EncodingRule {
  return {
    name,
    form: "own",
    looksLike,
    write: (number) => prefix + inDigits(number, alphabet, width),
    read: (text) => {
      if (text.length !== prefix.length + width || !text.startsWith(prefix)) return [];
      const number = fromDigits(text.slice(prefix.length), alphabet);
      return number === undefined ? [] : [number];
    },
  };
}

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
