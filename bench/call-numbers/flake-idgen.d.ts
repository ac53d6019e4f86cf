/** flake-idgen has no types. */
declare module "flake-idgen" {
  export default class FlakeId {
    /** Throws when the sequence of the millisecond is used up. */
    next(): Buffer;
  }
}
