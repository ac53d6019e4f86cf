/** The numbering schemes: their fields, how to mint and parse their numbers, and what they cost. */
import type { Scheme } from "./scheme.js";
import { callNumber } from "./schemes/call-number.js";
import { chibrary33284, chibrary41620 } from "./schemes/chibrary.js";
import { randomBase625, tickets } from "./schemes/clockless.js";
import { mysql119, mysql1361 } from "./schemes/mysql.js";
import { ksuid, nanoid, ulid } from "./schemes/random-bits.js";
import { millis411013, objectid, snowflake2015, twitterSnowflake } from "./schemes/snowflakes.js";
import { uuid, uuidv7 } from "./schemes/uuid.js";

export { approximateChanceOfRepeat, chanceOfRepeat, drawsForChance } from "./birthday.js";
export type { Load } from "./chances.js";
export type { Coordination, Facts, Failure, Order, Reveals } from "./facts.js";
export type { Field, NodeSource, SequenceScope, Source, Values, Width } from "./fields.js";
export {
  type Clock,
  type Memory,
  type MintContext,
  type Minted,
  type MintStep,
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
];
