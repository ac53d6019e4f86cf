/** A BIGINT of decimal fields: 13 digits of milliseconds, 6 random, 1 of the server. 20 digits can be more than BIGINT UNSIGNED holds: those are refused. */
import { defineScheme } from "../define-scheme.js";
import { decimal, type EncodingRule, paddedDecimal } from "../encodings.js";

/** 2011-01-01 00:00:00 UTC. */
const EPOCH_MS = 1_293_840_000_000;
const UNSIGNED_BIGINT_MAX = 2n ** 64n - 1n;
const SIGNED_BIGINT_MAX = 2n ** 63n - 1n;
const DIGIT_COUNT = 20;
/** Of random and server. */
const LOW_DIGIT_COUNT = 7;
const TIME_WEIGHT = 10n ** BigInt(LOW_DIGIT_COUNT);

export const mysql1361 = defineScheme({
  name: "mysql-13-6-1",
  title: "MySQL BIGINT: 13 digits of milliseconds, 6 random, 1 of the server",
  fields: [
    { name: "time", width: { digits: 13 }, source: { kind: "clock", unitMs: 1, epochMs: EPOCH_MS } },
    { name: "random", width: { digits: 6 }, source: { kind: "random", from: 0, to: 999_999 } },
    { name: "server", width: { digits: 1 }, source: { kind: "node", from: "server" } },
  ],
  greatest: UNSIGNED_BIGINT_MAX,
  encodings: [decimal("decimal", DIGIT_COUNT), paddedDecimal("as printed", DIGIT_COUNT), asTheCodeMakesIt()],
  notes: (_, number) => ({ "signed BIGINT": number > SIGNED_BIGINT_MAX ? "does not fit" : "fits" }),
});

/** The published code joins texts and pads all but the first, so a time of 0 leaves a leading zero. */
function asTheCodeMakesIt(): EncodingRule {
  const shape = new RegExp(`^[0-9]{${LOW_DIGIT_COUNT + 1},${DIGIT_COUNT}}$`);
  return {
    name: "as the code makes it",
    looksLike: `${LOW_DIGIT_COUNT + 1} to ${DIGIT_COUNT} decimal digits`,
    write: (number) => `${number / TIME_WEIGHT}${String(number % TIME_WEIGHT).padStart(LOW_DIGIT_COUNT, "0")}`,
    read: (text) => (shape.test(text) ? [BigInt(text)] : []),
  };
}
