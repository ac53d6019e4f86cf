/** The numbering schemes: their fields, how to generate and parse their numbers, and what they cost. */
import type { Scheme } from "./scheme.js";
import { callNumber } from "./schemes/call-number.js";
import { chibrary33284, chibrary41620 } from "./schemes/chibrary.js";
import { randomBase625, tickets } from "./schemes/clockless.js";
import { mysql119, mysql1361 } from "./schemes/mysql.js";
import { contentHash, HASH_LENGTHS, hash12, ksuid, nanoid, rand64, ulid } from "./schemes/random-bits.js";
import { millis411013, objectid, snowflake2015, twitterSnowflake } from "./schemes/snowflakes.js";
import { uuid, uuidv7 } from "./schemes/uuid.js";

export { approximateChanceOfRepeat, chanceOfRepeat, drawsForChance } from "./birthday.js";
export type { Load } from "./chances.js";
export { type Declaration, defineScheme } from "./define-scheme.js";
export { base62, decimal, type EncodingRule, type Form, fixedWidth } from "./encodings.js";
export type { Coordination, Facts, Failure, Order, Reveals } from "./facts.js";
export type { Field, NodeSource, SequenceScope, Source, Values, Width } from "./fields.js";
export {
  type Clock,
  type GenerateContext,
  type Generated,
  type GenerateStep,
  type Memory,
  type NodeIdentity,
  type Parsed,
  type Random,
  type Reading,
  type Scheme,
  SchemeError,
  type SchemeErrorCode,
} from "./scheme.js";

/** In the order in which they are listed. */
export const SCHEMES: readonly Scheme[] = [
  callNumber,
  chibrary41620,
  chibrary33284,
  mysql1361,
  mysql119,
  millis411013,
  snowflake2015,
  twitterSnowflake,
  uuid,
  uuidv7,
  objectid,
  ulid,
  ksuid,
  nanoid,
  tickets,
  randomBase625,
  rand64,
  hash12,
];

const HASH = /^hash-([0-9]{1,2})$/;

/** Returns the scheme of this name: one of the list, or `hash-N` for N hex digits, 4 to 64. */
export function schemeNamed(name: string): Scheme | undefined {
  const length = Number(HASH.exec(name)?.[1]);
  if (length >= HASH_LENGTHS.min && length <= HASH_LENGTHS.max) return contentHash(length);
  return SCHEMES.find((scheme) => scheme.name === name);
}

const LIKE_A_HASH = /^[0-9a-f]{7,64}$/;

/**
 * Returns the schemes that a text of unknown origin is compared with, with this epoch where it can be chosen. Of the hashes, the one of
 * the text's length; of digits alone none: they are more likely a count or a time.
 */
export function schemesFor(text: string, epochMs?: number): readonly Scheme[] {
  const isHash = LIKE_A_HASH.test(text);
  return SCHEMES.flatMap((scheme) => {
    if (scheme !== hash12 || !isHash) return [epochMs === undefined ? scheme : (scheme.withEpoch(epochMs) ?? scheme)];
    return /^[0-9]+$/.test(text) ? [] : [contentHash(text.length)];
  });
}
