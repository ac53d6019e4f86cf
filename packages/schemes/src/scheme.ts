/** The one interface of all schemes, and what generating needs from outside. Nothing in this package reads the time, draws or waits on its own. */
import type { Form } from "./encodings.js";
import type { Facts } from "./facts.js";
import type { Field, Values } from "./fields.js";

/** A step of generating: a number, or the time at which to try again. */
export type GenerateStep = Generated | { readonly outcome: "wait"; readonly untilMs: number };

/** A number that was generated. */
export interface Generated {
  readonly outcome: "generated";
  readonly text: string;
  readonly values: Values;
}

/** One number that a text may mean. */
export interface Reading {
  readonly values: Values;
  readonly number: bigint;
  /** The encoding of the text: `encodings(values)` has the text under this name. */
  readonly encoding: string;
  readonly form: Form;
  /** Where the number holds a time: milliseconds since 1970, UTC, the beginning of the unit. */
  readonly timeMs?: number;
  /** What the fields alone do not show, such as the version of a UUID, in the order to print. */
  readonly notes: Readonly<Record<string, string>>;
}

/** The number that a text is in this scheme, or why it is none. */
export type Parsed =
  | (Reading & {
      readonly matches: true;
      /** Other numbers that the same text means in another encoding, such as a former alphabet. The text does not show which. */
      readonly otherReadings: readonly Reading[];
    })
  /** `isNear`: it looks like one. */
  | { readonly matches: false; readonly isNear: boolean; readonly reason: string };

/** A numbering scheme, as its declaration makes it. */
export interface Scheme {
  /** Lower case, with hyphens. Never changes. */
  readonly name: string;
  /** One line for people. */
  readonly title: string;
  /** Most significant first. */
  readonly fields: readonly Field[];
  /**
   * Performs one step of generating. Reads the clock once and never waits: the caller waits.
   * @throws SchemeError `clock_moved_backward` or `number_space_exhausted`; no number was made, and the next step decides again.
   * @throws RangeError where the context returns a value that fits nowhere: a node too great for its field, a clock before the epoch, a
   * draw out of bounds. No number was made.
   */
  generate(context: GenerateContext): GenerateStep;
  /** Parses a text. A text that only nearly matches does not match. Never throws. */
  parse(text: string): Parsed;
  /**
   * Returns the number of these values in the encoding to use today.
   * @throws RangeError where a value is missing, is no field of this scheme or does not fit its field.
   */
  format(values: Values): string;
  /** Returns every way to write these values by its name, that of `format` first. Wrong forms that were published are among them. */
  encodings(values: Values): Readonly<Record<string, string>>;
  readonly facts: Facts;
  /** Returns the scheme with another epoch, in milliseconds since 1970; undefined where its epoch can't be chosen. */
  withEpoch(epochMs: number): Scheme | undefined;
}

/** Why no number could be made. The codes are a closed list and stable; the text is for people. */
export type SchemeErrorCode = "clock_moved_backward" | "number_space_exhausted";

export class SchemeError extends Error {
  override readonly name = "SchemeError";

  constructor(
    readonly code: SchemeErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/** What generating needs from outside. */
export interface GenerateContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly node: NodeIdentity;
  /** Ends with the process. */
  readonly memory: Memory;
  /** Outlives the process, on this machine. */
  readonly disk: Memory;
  /** A counter that all nodes share, and that survives them. The first value is 1. */
  readonly counter: { next(): bigint };
}

/** The clock of one process. */
export interface Clock {
  /** Milliseconds since 1970, UTC. May stand still, leap and go back. */
  nowMs(): number;
}

/** Random numbers, of a generator that the caller chooses. */
export interface Random {
  /** A whole number from 0 to `bound - 1` (`bound` 1 to 2^53 - 1), each with the same chance. */
  below(bound: number): number;
}

/** What distinguishes one process from all others. Two processes with the same identity are a node collision. */
export interface NodeIdentity {
  /** Assigned from a list of nodes that an operator keeps. */
  readonly given: number;
  /** The number of the server in its group; assigned too, but narrower. */
  readonly server: number;
  readonly pid: number;
  /** MAC addresses in the order of the interfaces, as `de:ad:be:ef:00:01`. Without any, `given` is used in place of their hash. */
  readonly macs: readonly string[];
}

/** Small state under a name, for one process alone. */
export interface Memory {
  get(name: string): bigint | undefined;
  set(name: string, value: bigint): void;
}
