/** What is compared: words of a closed list and figures, all of them computed from the fields (`facts-of.ts`). */

/** How numbers that were made one after the other lie beside each other. */
export type Order =
  /** Each greater than the one before, whoever made it. */
  | "strict"
  /** Greater than those of an earlier unit of the clock, if the clocks agree. */
  | "by time"
  /** Each greater than the one before of the same node. */
  | "within a node"
  /** Made in order, written so that the eye sees none. Anyone can compute it back. */
  | "shuffled"
  | "none";

/** What all makers must have agreed on, or must ask, that no number repeats. */
export type Coordination =
  | "nothing"
  | "a number for each node"
  | "one request for each run"
  | "one request for each number";

/** What a reader of one number learns. */
export type Reveals = "when" | "where" | "how many" | "nothing";

/** What makes the first repeat, or the first refusal. */
export type Failure = "clock goes back" | "two nodes alike" | "space used up" | "birthday" | "counter set back";

/** How many numbers were made a second, by all nodes together, for how long, by how many nodes. */
export interface Made {
  readonly perSecond: number;
  readonly seconds: number;
  readonly nodes: number;
}

export interface Facts {
  /** log2 of how many different numbers can be made; 47 for a call number. What is the same in every number does not count. */
  readonly bits: number;
  /** Length of the longest text that `format` writes. */
  readonly characters: number;
  readonly order: Order;
  readonly coordination: Coordination;
  readonly reveals: readonly Reveals[];
  /** How many nodes can mint without a repeat, if each knows its number; Infinity where nodes play no part. */
  readonly nodes: number;
  /** The most numbers that all nodes together can make in a second; Infinity where nothing bounds them. */
  readonly perSecond: number;
  /** The last moment of the clock field, in milliseconds since 1970; absent without one. */
  readonly endsMs?: number;
  /**
   * The chance that the best guess of a stranger, who knows the scheme and the second but no number, hits one that was made in that second, if
   * `perSecond` were, by all nodes that there can be. Where there is no clock: one of all that were made, and a count is guessed at its beginning.
   * @throws RangeError as `repeats` does.
   */
  guessed(made: Made): number;
  /**
   * The chance that a reader of one number, who knows the scheme and how busy it is, names another that exists: the one before it, where
   * numbers are counted, and else the likeliest.
   * @throws RangeError as `repeats` does.
   */
  neighbour(made: Made): number;
  /**
   * Seconds until every number is used at this pace; with a clock, the whole time that its field can hold, whatever the pace.
   * @throws RangeError for a rate below 0.
   */
  lastsSeconds(madePerSecond: number): number;
  /**
   * The chance of at least one repeat among the numbers made in that time, all nodes together, by this scheme as it is meant to be run:
   * clocks right, counters never set back, given node numbers all different while there are enough of them. Numbers come at random moments,
   * as many from each node as from the next; without a clock, exactly so many are drawn.
   * @throws RangeError where an amount is below 0, not finite, or there is less than 1 node.
   */
  repeats(made: Made): number;
  /** In the order in which they are met in practice. */
  readonly failures: readonly Failure[];
}
