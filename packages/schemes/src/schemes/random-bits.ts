/** Schemes of random bits, two of them behind a time. */
import { defineScheme } from "../define-scheme.js";
import { base62, fixedWidth } from "../encodings.js";

/** Crockford's: without I, L, O and U. */
const BASE32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID_LENGTH = 26;

/** Its first character is 7 at most: 26 characters have two bits more than the number. */
export const ulid = defineScheme({
  name: "ulid",
  title: "ULID: milliseconds, then 80 random bits",
  fields: [
    { name: "time", width: { bits: 48 }, source: { kind: "clock", unitMs: 1, epochMs: 0 } },
    { name: "random", width: { bits: 80 }, source: { kind: "random", from: 0 } },
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
