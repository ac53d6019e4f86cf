/** The numbering schemes: what each is made of, how to mint with it, how to read it, and what it costs. */
export { approximateChanceOfRepeat, chanceOfRepeat, drawsForChance, drawsForHalf } from "./birthday.js";
export type { Coordination, Facts, Failure, Made, Order, Reveals } from "./facts.js";
export {
  capacityOf,
  type Field,
  type NodeSource,
  type SequenceScope,
  type Source,
  type Width,
} from "./field.js";
export type { CentralCounter, Clock, Memory, MintContext, NodeIdentity, Random } from "./mint-context.js";
export type { Minted, Parsed, Reading, Scheme, Spelling, Values } from "./scheme.js";
export { SchemeError, type SchemeErrorCode } from "./scheme-error.js";
export { chibrary33284Since } from "./schemes/chibrary-3-32-8-4.js";
export { SCHEMES, schemeNamed } from "./schemes.js";
