/** The numbering schemes: their fields, how to mint and parse their numbers, and what they cost. */
export { approximateChanceOfRepeat, chanceOfRepeat, drawsForChance } from "./birthday.js";
export type { Coordination, Facts, Failure, Order, Reveals } from "./facts.js";
export { capacityOf, type Field, type NodeSource, type SequenceScope, type Source, type Width } from "./field.js";
export {
  type CentralCounter,
  type Clock,
  type Encoded,
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
  type Values,
} from "./scheme.js";
export { chibrary33284Since } from "./schemes/chibrary-3-32-8-4.js";
export { SCHEMES, schemeNamed } from "./schemes.js";
export type { Load } from "./shape.js";
