/** The comparison of schemes: words of closed lists and figures, all of them computed from the fields. */
import { guessChance, type Load, neighborChance, repeatChance, unitsIn } from "./chances.js";
import { type Field, fieldsOfKind } from "./fields.js";
import { type Shape, shapeOf } from "./shape.js";

/** How numbers that were made one after the other compare. */
export const ORDERS = {
  strict: "each number is greater than the one made before it, by any process",
  "by time": "later numbers are greater, as far as the clocks of the nodes agree",
  "within a node": "each number is greater than the one that the same node made before",
  shuffled: "made in order, and written so that the eye sees none; anyone can compute it back",
  none: "numbers are in the order in which they were drawn",
} as const;
export type Order = keyof typeof ORDERS;

/** What all processes must have agreed on, or must request, so that no number repeats. */
export const COORDINATIONS = {
  nothing: "nothing: every process generates alone",
  "a number for each node": "a number for each node: an operator keeps the list",
  "one request for each run": "one request to the coordinator for each run; no other for the numbers in it",
  "one request for each number": "one request to the counter for each number",
} as const;
export type Coordination = keyof typeof COORDINATIONS;

/** What a reader of one number learns. */
export const REVEALED = {
  when: "when it was made",
  where: "where it was made",
  "how many": "how many were made before",
  nothing: "nothing",
} as const;
export type Reveals = keyof typeof REVEALED;

/** What causes the first repeat, or the first rejection. */
export type Failure =
  | "clock goes back"
  | "two nodes alike"
  | "space used up"
  | "birthday"
  | "counter set back"
  | "same content";

/** What follows from the fields of a scheme. */
export interface Facts {
  /** log2 of how many different numbers can be made; 47 for a call number. What is the same in every number does not count. */
  readonly bits: number;
  /** Length of the longest text that `format` writes. */
  readonly characters: number;
  readonly order: Order;
  readonly coordination: Coordination;
  readonly reveals: readonly Reveals[];
  /** How many nodes can generate without a repeat, if each knows its number; Infinity where there are no nodes. */
  readonly nodes: number;
  /** The most numbers that all nodes together can make in a second; Infinity where nothing bounds them. */
  readonly perSecond: number;
  /** The last moment of the clock field, in milliseconds since 1970; undefined without one. */
  readonly endsMs: number | undefined;
  /**
   * The probability that the best guess of a person who knows the scheme and the second, but no number, hits one that was made in that
   * second by all nodes that can exist. Without a clock: one of all that were made; a counter is guessed at its first value.
   */
  guessed(load: Load): number;
  /**
   * The probability that a reader of one number, who knows the scheme and its load, can name another that exists: the one before it where
   * numbers are counted, else the likeliest.
   */
  neighbor(load: Load): number;
  /**
   * Seconds until every number is used at this rate; with a clock, the whole time that its field can hold, at any rate.
   */
  lastsSeconds(perSecond: number): number;
  /**
   * The probability of at least one repeat among the numbers of that load, while the scheme is run as intended: clocks right, counters
   * never set back, assigned node numbers all different while there are enough of them. Numbers come at random moments, equally many from
   * each node; without a clock, exactly so many are drawn.
   */
  repeats(load: Load): number;
  /** In the order in which they are met in practice. */
  readonly failures: readonly Failure[];
}

/**
 * @param greatest the greatest number of the scheme.
 * @param characters the length of its text.
 */
export function factsOf(fields: readonly Field[], greatest: bigint, characters: number, isShuffled: boolean): Facts {
  const shape = shapeOf(fields, greatest);
  const { clock, nodes, count } = shape;
  return {
    bits: Math.log2(count),
    characters,
    order: isShuffled ? "shuffled" : orderOf(shape),
    coordination: coordinationOf(shape),
    reveals: revealsOf(shape),
    nodes: nodes?.count ?? Number.POSITIVE_INFINITY,
    perSecond: clock === undefined ? Number.POSITIVE_INFINITY : unitsIn(shape, 1) * numbersPerUnit(shape),
    endsMs: clock?.endsMs,
    guessed: (load) => guessChance(shape, load),
    neighbor: (load) => neighborChance(shape, load),
    lastsSeconds: (perSecond) => (clock === undefined ? count / perSecond : (clock.unitCount * clock.unitMs) / 1_000),
    repeats: (load) => repeatChance(shape, load),
    failures: [...(fieldsOfKind(fields, "digest").length > 0 ? (["same content"] as const) : []), ...failuresOf(shape)],
  };
}

/** By the most significant field that differs between numbers. */
function orderOf({ leading, nodes }: Shape): Order {
  if (leading === "clock") return "by time";
  if (leading === "counter") return nodes === undefined ? "strict" : "within a node";
  return leading === "node" ? "within a node" : "none";
}

function coordinationOf({ counter, nodes }: Shape): Coordination {
  if (counter !== undefined) return `one request ${counter}`;
  return nodes?.isGiven ? "a number for each node" : "nothing";
}

function revealsOf({ clock, nodes, counter, sequence }: Shape): readonly Reveals[] {
  const isCounted = counter !== undefined || (sequence !== undefined && sequence.within !== "clock unit");
  const reveals: Reveals[] = [];
  if (clock !== undefined) reveals.push("when");
  if (nodes !== undefined) reveals.push("where");
  if (isCounted) reveals.push("how many");
  return reveals.length === 0 ? ["nothing"] : reveals;
}

/** First what may happen on any day, then what needs a restored disk, then what needs many numbers; the end of all numbers last. */
function failuresOf({ nodes, counter, sequence, drawn }: Shape): readonly Failure[] {
  const failures: Failure[] = [];
  if (sequence?.within === "clock unit") failures.push("clock goes back");
  if (nodes !== undefined) failures.push("two nodes alike");
  if (counter !== undefined || sequence?.within === "kept") failures.push("counter set back");
  if (drawn.length > 0) failures.push("birthday");
  return [...failures, "space used up"];
}

function numbersPerUnit({ nodes, sequence, drawn }: Shape): number {
  const drawnCount = drawn.reduce((sum, { count }) => sum + count, 0) || 1;
  return (nodes?.count ?? 1) * (sequence?.count ?? 1) * drawnCount;
}
