/** Two schemes of decimal fields, made for MySQL. Their published code joins texts, which is wrong for some numbers: those forms are read too. */
import { defineScheme } from "../define-scheme.js";
import { decimal, type EncodingRule, former, paddedDecimal } from "../encodings.js";

const DIGIT_COUNT = 20;

/** 2011-01-01 00:00:00 UTC. */
const UTC_EPOCH_MS = 1_293_840_000_000;
const UNSIGNED_BIGINT_MAX = 2n ** 64n - 1n;
const SIGNED_BIGINT_MAX = 2n ** 63n - 1n;
/** Of random and server. */
const LOW_DIGIT_COUNT = 7;

/** A BIGINT: milliseconds, random, server. 20 digits can be more than BIGINT UNSIGNED holds: those are rejected. */
export const mysql1361 = defineScheme({
  name: "mysql-13-6-1",
  title: "MySQL BIGINT: 13 digits of milliseconds, 6 random, 1 of the server",
  fields: [
    {
      name: "time",
      width: { digits: 13 },
      source: { kind: "clock", unitMs: 1, epochMs: UTC_EPOCH_MS, isChosen: true },
    },
    { name: "random", width: { digits: 6 }, source: { kind: "random", from: 0, to: 999_999 } },
    { name: "server", width: { digits: 1 }, source: { kind: "node", from: "server" } },
  ],
  greatest: UNSIGNED_BIGINT_MAX,
  encodings: [
    decimal("decimal", DIGIT_COUNT),
    paddedDecimal("as printed", DIGIT_COUNT),
    // The published code pads all texts but the first, so a time of 0 leaves a leading zero.
    former(
      decimal(
        "as the code makes it",
        DIGIT_COUNT,
        `${LOW_DIGIT_COUNT + 1} to ${DIGIT_COUNT} decimal digits`,
        (number) => joined(number, LOW_DIGIT_COUNT, LOW_DIGIT_COUNT),
      ),
    ),
  ],
  notes: (_, number) => ({ "signed BIGINT": number > SIGNED_BIGINT_MAX ? "does not fit" : "fits" }),
});

/** 2011-01-01, midnight of the eastern United States: what the statement subtracts. */
const EASTERN_EPOCH_MS = 1_293_858_000_000;
const SECONDS_DIGIT_COUNT = 11;
const UUID_DIGIT_COUNT = 9;

/**
 * Made in SQL: seconds, then the last 9 decimal digits of the first 8 hex digits of a UUID, taken for random. The published statement joins
 * both without padding, so a small second part loses its zeros and the number becomes that of another second.
 */
export const mysql119 = defineScheme({
  name: "mysql-11-9",
  title: "MySQL, in SQL: 11 digits of seconds, 9 of a UUID",
  fields: [
    {
      name: "seconds",
      width: { digits: SECONDS_DIGIT_COUNT },
      source: { kind: "clock", unitMs: 1_000, epochMs: EASTERN_EPOCH_MS, isChosen: true },
    },
    { name: "uuid", width: { digits: UUID_DIGIT_COUNT }, source: { kind: "remainder", drawnBelow: 2 ** 32 } },
  ],
  encodings: [
    paddedDecimal("fixed20", DIGIT_COUNT),
    decimal("decimal", DIGIT_COUNT),
    // Where the second part has all its digits, as of 42 in 43 UUIDs.
    former(
      decimal(
        "as written",
        DIGIT_COUNT,
        `up to ${SECONDS_DIGIT_COUNT} and exactly ${UUID_DIGIT_COUNT} decimal digits`,
        (number) => joined(number, UUID_DIGIT_COUNT, UUID_DIGIT_COUNT),
      ),
    ),
    asWrittenZerosLost(),
  ],
});

/** Where the UUID began with hex below 05f5e100: the text does not show where the seconds end, so each place is a reading. Longer second parts are likelier. */
function asWrittenZerosLost(): EncodingRule {
  return {
    name: "as written, zeros lost",
    form: "former",
    looksLike: `up to ${SECONDS_DIGIT_COUNT} and fewer than ${UUID_DIGIT_COUNT} decimal digits`,
    write: (number) => {
      const isShort = number % 10n ** BigInt(UUID_DIGIT_COUNT) < 10n ** BigInt(UUID_DIGIT_COUNT - 1);
      return isShort ? joined(number, UUID_DIGIT_COUNT, 1) : undefined;
    },
    read: (text) => {
      const found: bigint[] = [];
      if (!/^[0-9]{2,19}$/.test(text)) return found;
      for (let length = UUID_DIGIT_COUNT - 1; length > 0; length--) {
        const seconds = text.slice(0, -length);
        if (seconds === "" || seconds.length > SECONDS_DIGIT_COUNT) continue;
        found.push(BigInt(seconds) * 10n ** BigInt(UUID_DIGIT_COUNT) + BigInt(text.slice(-length)));
      }
      return found;
    },
  };
}

/** The upper digits and the `lowCount` lower ones as the texts of two numbers, the second with zeros up to `padded` digits. */
function joined(number: bigint, lowCount: number, padded: number): string {
  const weight = 10n ** BigInt(lowCount);
  return `${number / weight}${String(number % weight).padStart(padded, "0")}`;
}
