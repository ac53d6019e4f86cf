/** The one interface of all schemes. */
import type { Facts } from "./facts.js";
import type { Field } from "./field.js";
import type { MintContext } from "./mint-context.js";

/** The value of each field, by its name: a number where every value of the field is exact as one (up to 53 bits), else a bigint. */
export type Values = Readonly<Record<string, number | bigint>>;

/** One way to write a number of the scheme. */
export interface Spelling {
  /** As `decimal`, `base62`, `hex`, `as published`. */
  readonly name: string;
  readonly text: string;
}

/** A step of minting: a number, or the time at which to try again. */
export type Minted =
  | { readonly outcome: "minted"; readonly text: string; readonly values: Values }
  | { readonly outcome: "wait"; readonly untilMs: number };

/** One number that a text stands for. */
export interface Reading {
  readonly values: Values;
  readonly number: bigint;
  /** The spelling that the text is in: `spellings(values)` has the text under this name. */
  readonly spelling: string;
  /** Where the number holds a time: milliseconds since 1970, UTC, the beginning of the unit. */
  readonly timeMs?: number;
  /** What the fields don't say by themselves, as the version of a UUID, in the order to print. */
  readonly notes: Readonly<Record<string, string>>;
}

/** What a text is in this scheme, or why it is nothing of it. */
export type Parsed =
  | (Reading & {
      readonly matches: true;
      /** Other numbers that the same text stands for in another spelling, as one of a former alphabet. Nothing in the text tells which. */
      readonly otherReadings: readonly Reading[];
    })
  | { readonly matches: false; readonly reason: string };

export interface Scheme {
  /** As it is typed: lower case, with hyphens. Never changes. */
  readonly name: string;
  /** One line for people. */
  readonly title: string;
  /** Most significant first. */
  readonly fields: readonly Field[];
  /**
   * One step of minting. Never waits and reads the clock once: who calls it waits.
   * @throws SchemeError `clock_went_back` or `space_used_up`; no number was made, and the next step decides anew.
   * @throws RangeError where the context answers what fits nowhere: a node too great for its field, a clock before the epoch, a draw out of
   * bounds. Nor was a number made then.
   */
  mint(context: MintContext): Minted;
  /** Takes a text apart. A text that only nearly matches does not match. */
  parse(text: string): Parsed;
  /**
   * The number of these values, in the spelling that is to be used today.
   * @throws RangeError where a value is missing, is no field of this scheme or does not fit its field.
   */
  format(values: Values): string;
  /** Every way to write these values, that of `format` first. Forms that were published and were wrong are among them. */
  spellings(values: Values): readonly Spelling[];
  readonly facts: Facts;
}
