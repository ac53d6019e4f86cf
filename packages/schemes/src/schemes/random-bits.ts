/** Schemes of random bits, two of them behind a time, one of a digest. */
import { defineScheme } from "../define-scheme.js";
import { BASE16, base62, decimal, fixedWidth, hex64, signed64 } from "../encodings.js";
import type { Scheme } from "../scheme.js";

/** Crockford's: without I, L, O and U. */
const BASE32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID_LENGTH = 26;

/** Its first character is 7 at most: 26 characters have two bits more than the number. */
export const ulid = defineScheme({
  name: "ulid",
  title: "ULID: milliseconds, then 80 random bits",
  fields: [
    { name: "time", width: { bits: 48 }, source: { kind: "clock", unitMs: 1, epochMs: 0 } },
    { name: "random", width: { bits: 80 }, source: { kind: "random", from: 0, rises: true } },
  ],
  encodings: [
    fixedWidth("upper case", BASE32, ULID_LENGTH, "", "26 characters of Crockford's base32, all of one case"),
    fixedWidth(
      "lower case",
      BASE32.toLowerCase(),
      ULID_LENGTH,
      "",
      "26 characters of Crockford's base32, all of one case",
    ),
  ],
});

/** Since 2014-05-13 16:53:20 UTC. */
export const ksuid = defineScheme({
  name: "ksuid",
  title: "KSUID: seconds, then 128 random bits",
  fields: [
    { name: "seconds", width: { bits: 32 }, source: { kind: "clock", unitMs: 1_000, epochMs: 1_400_000_000_000 } },
    { name: "random", width: { bits: 128 }, source: { kind: "random", from: 0 } },
  ],
  encodings: [base62("base62", 27)],
});

/** In the order of nanoid's own code: each character is six of the bits. */
const NANOID_DIGITS = "useandom-26T198340PX75pxJACKVERYMINDBUSHWOLF_GQZbfghjklqvwyzrict";
const NANOID_LENGTH = 21;

export const nanoid = defineScheme({
  name: "nanoid",
  title: "nanoid: 21 random characters of 64",
  fields: [{ name: "random", width: { bits: 6 * NANOID_LENGTH }, source: { kind: "random", from: 0 } }],
  encodings: [fixedWidth("characters", NANOID_DIGITS, NANOID_LENGTH, "", "21 characters of A-Z, a-z, 0-9, _ and -")],
});

export const rand64 = defineScheme({
  name: "rand64",
  title: "A random number of 64 bits",
  fields: [{ name: "random", width: { bits: 64 }, source: { kind: "random", from: 0 } }],
  encodings: [decimal("decimal", 20), signed64, hex64],
});

/** In hex digits. The shortest is that of git, the longest a whole SHA-256. */
export const HASH_LENGTHS = { min: 4, max: 64 } as const;

/** @param length from `HASH_LENGTHS.min` to `HASH_LENGTHS.max`. */
export function contentHash(length: number): Scheme {
  return defineScheme({
    name: `hash-${length}`,
    title: `The first ${length} hex digits of a digest of the content`,
    fields: [{ name: "digest", width: { bits: 4 * length }, source: { kind: "digest" } }],
    encodings: [fixedWidth("hex", BASE16, length, "", `${length} lower-case hex digits`)],
  });
}

/** As many bits as a call number has, and one more. */
export const hash12 = contentHash(12);
