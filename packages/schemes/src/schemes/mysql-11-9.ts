/**
 * Made in SQL: 11 digits of seconds, then the last 9 decimal digits of the first 8 hex digits of a UUID, taken for random. The published statement
 * joins texts without padding, so a small second part loses its zeros and the number becomes that of another second.
 */
import { defineScheme } from "../define-scheme.js";
import { decimal, type EncodingRule, paddedDecimal } from "../encodings.js";

/** 2011-01-01, midnight of the eastern United States: what the statement subtracts. */
const EPOCH_MS = 1_293_858_000_000;
const SECONDS_DIGIT_COUNT = 11;
const UUID_DIGIT_COUNT = 9;
const SECOND_WEIGHT = 10n ** BigInt(UUID_DIGIT_COUNT);
const DIGIT_COUNT = SECONDS_DIGIT_COUNT + UUID_DIGIT_COUNT;

export const mysql119 = defineScheme({
  name: "mysql-11-9",
  title: "MySQL, in SQL: 11 digits of seconds, 9 of a UUID",
  fields: [
    {
      name: "seconds",
      width: { digits: SECONDS_DIGIT_COUNT },
      source: { kind: "clock", unitMs: 1_000, epochMs: EPOCH_MS },
    },
    { name: "uuid", width: { digits: UUID_DIGIT_COUNT }, source: { kind: "remainder", drawnBelow: 2 ** 32 } },
  ],
  encodings: [
    paddedDecimal("fixed20", DIGIT_COUNT),
    decimal("decimal", DIGIT_COUNT),
    asWritten(),
    asWrittenZerosLost(),
  ],
});

/** Where the second part has all its digits, as of 42 in 43 UUIDs. */
function asWritten(): EncodingRule {
  return {
    name: "as written",
    looksLike: `up to ${SECONDS_DIGIT_COUNT} and exactly ${UUID_DIGIT_COUNT} decimal digits`,
    write: (number) => `${number / SECOND_WEIGHT}${String(number % SECOND_WEIGHT).padStart(UUID_DIGIT_COUNT, "0")}`,
    read: (text) => (isDigits(text) && text.length > UUID_DIGIT_COUNT ? [BigInt(text)] : []),
  };
}

/** Where the UUID began with hex below 05f5e100: the text does not show where the seconds end, so each place is a reading. Longer second parts are likelier. */
function asWrittenZerosLost(): EncodingRule {
  return {
    name: "as written, zeros lost",
    looksLike: `up to ${SECONDS_DIGIT_COUNT} and fewer than ${UUID_DIGIT_COUNT} decimal digits`,
    write: (number) => {
      const uuid = String(number % SECOND_WEIGHT);
      return uuid.length < UUID_DIGIT_COUNT ? `${number / SECOND_WEIGHT}${uuid}` : undefined;
    },
    read: (text) => {
      if (!isDigits(text)) return [];
      const lengths = Array.from({ length: UUID_DIGIT_COUNT - 1 }, (_, index) => UUID_DIGIT_COUNT - 1 - index);
      return lengths
        .filter((length) => length < text.length && text.length - length <= SECONDS_DIGIT_COUNT)
        .map((length) => BigInt(text.slice(0, -length)) * SECOND_WEIGHT + BigInt(text.slice(-length)));
    },
  };
}

function isDigits(text: string): boolean {
  return text.length <= DIGIT_COUNT && /^[0-9]{2,}$/.test(text);
}
