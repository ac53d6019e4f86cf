/** The numbering schemes: their fields, how to mint and parse their numbers, and what they cost. */
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
export { SCHEMES } from "./schemes.js";
