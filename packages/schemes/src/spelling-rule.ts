/** The ways to write a number that schemes have in common. A rule may read generously: `reading.ts` accepts only what it writes the same way. */
import { BASE2, BASE16, BASE62, fromDigits, inDigits } from "./positional.js";

export interface SpellingRule {
  /** As `decimal`, `base62`, `as printed`. */
  readonly name: string;
  /** What such a text looks like, for the reason why one is none: `8 base62 characters`. */
  readonly looksLike: string;
  /** Undefined where this spelling has no way to write the number. */
  write(number: bigint): string | undefined;
  /** Every number that the text may stand for, the likeliest first. Must be cheap for a text of any length. */
  read(text: string): readonly bigint[];
}

/** No leading zeros, up to `digitCountMax` digits. */
export function decimal(name: string, digitCountMax: number): SpellingRule {
  const shape = new RegExp(`^(0|[1-9][0-9]{0,${digitCountMax - 1}})$`);
  return {
    name,
    looksLike: `a whole number of up to ${digitCountMax} digits`,
    write: String,
    read: (text) => (shape.test(text) ? [BigInt(text)] : []),
  };
}

/** Leading zeros up to exactly `width` digits. */
export function paddedDecimal(name: string, width: number): SpellingRule {
  return fixedWidth(name, "0123456789", width, "", `${width} decimal digits`);
}

/** As a signed BIGINT column shows 64 bits: from 2^63 on, negative. */
export function signed64(name: string): SpellingRule {
  const shape = /^(0|-?[1-9][0-9]{0,18})$/;
  return {
    name,
    looksLike: "a signed whole number of 64 bits",
    write: (number) => String(BigInt.asIntN(64, number)),
    read: (text) => (shape.test(text) ? [BigInt.asUintN(64, BigInt(text))] : []),
  };
}

export function base62(name: string, width: number, alphabet = BASE62): SpellingRule {
  const base = alphabet.length;
  return fixedWidth(name, alphabet, width, "", `${width} base${base} characters`);
}

/** With `0x` before it, so that it is never taken for a decimal. */
export function hex(bits: number): SpellingRule {
  return fixedWidth("hex", BASE16, Math.ceil(bits / 4), "0x", `0x and ${Math.ceil(bits / 4)} lower-case hex digits`);
}

/** With `0b` before it, so that it is never taken for a decimal. */
export function binary(bits: number): SpellingRule {
  return fixedWidth("binary", BASE2, bits, "0b", `0b and ${bits} binary digits`);
}

/** Exactly `width` digits of `alphabet` behind `prefix`. */
export function fixedWidth(
  name: string,
  alphabet: string,
  width: number,
  prefix: string,
  looksLike: string,
): SpellingRule {
  return {
    name,
    looksLike,
    write: (number) => prefix + inDigits(number, alphabet, width),
    read: (text) => {
      if (text.length !== prefix.length + width || !text.startsWith(prefix)) return [];
      const number = fromDigits(text.slice(prefix.length), alphabet);
      return number === undefined ? [] : [number];
    },
  };
}
