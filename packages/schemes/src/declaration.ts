/** What a scheme says of itself. Everything else, `define-scheme.ts` derives. */
import type { Field } from "./field.js";
import type { Values } from "./scheme.js";
import type { SpellingRule } from "./spelling-rule.js";

export interface Declaration {
  /** As it is typed: lower case, with hyphens. Never changes. */
  readonly name: string;
  readonly title: string;
  /** Most significant first. */
  readonly fields: readonly Field[];
  /** The one to be used today first; then others, those that were published and were wrong among them. */
  readonly spellings: readonly SpellingRule[];
  /** The greatest number, where it is less than the fields could write. */
  readonly greatest?: bigint;
  /** A fixed permutation of the numbers, between the fields and what is written. */
  readonly shuffle?: Shuffle;
  /** Where minting differs from what the fields say: the last word on the values. */
  readonly adjust?: (values: Values) => Values;
  /** Where the time does not stand in one clock field: milliseconds since 1970, if this number has one. */
  readonly timeMs?: (values: Values) => number | undefined;
  readonly notes?: (values: Values, number: bigint) => Readonly<Record<string, string>>;
}

interface Shuffle {
  shuffled(number: bigint): bigint;
  unshuffled(number: bigint): bigint;
}
