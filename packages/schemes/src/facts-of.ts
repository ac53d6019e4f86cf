/** The figures of the comparison, computed from the fields. Nothing is typed here that a field says. */
import { atLeastOne, chanceOfRepeat, logOfNoCellTwice } from "./birthday.js";
import type { Declaration } from "./declaration.js";
import type { Coordination, Facts, Failure, Made, Order, Reveals } from "./facts.js";
import type { SequenceScope } from "./field.js";
import { guessed, neighbour } from "./guesses.js";
import { inUnitOfNode, mustBeAmount, mustBeMade, unitsIn } from "./made.js";
import { type Shape, shapeOf } from "./shape.js";

export function factsOf(declaration: Declaration, greatest: bigint): Facts {
  const shape = shapeOf(declaration.fields, greatest);
  const [today] = declaration.spellings as [Declaration["spellings"][number]];
  const { clock } = shape;
  return {
    bits: logarithm2(shape.count),
    characters: (today.write(greatest) as string).length,
    order: declaration.shuffle === undefined ? orderOf(shape) : "shuffled",
    coordination: coordinationOf(shape),
    reveals: revealsOf(shape),
    nodes: shape.nodes === undefined ? Number.POSITIVE_INFINITY : Number(shape.nodes.count),
    perSecond: clock === undefined ? Number.POSITIVE_INFINITY : unitsIn(shape, 1) * numbersInUnit(shape),
    ...(clock === undefined ? {} : { endsMs: clock.epochMs + clock.unitCount * clock.unitMs - 1 }),
    guessed: (made) => guessed(shape, mustBeMade(made)),
    neighbour: (made) => neighbour(shape, mustBeMade(made)),
    lastsSeconds: (madePerSecond) =>
      clock === undefined
        ? Number(shape.count) / mustBeAmount("madePerSecond", madePerSecond)
        : (clock.unitCount * clock.unitMs) / MS,
    repeats: (made) => repeats(shape, mustBeMade(made)),
    failures: failuresOf(shape),
  };
}

const MS = 1_000;

/** Of a count that may be beyond every double's exact whole numbers; log2 of a power of two is exact. */
function logarithm2(count: bigint): number {
  return Math.log2(Number(count));
}

/** By the most significant field that differs between numbers. */
function orderOf({ leading, nodes }: Shape): Order {
  if (leading === "clock") return "by time";
  if (leading === "counter") return nodes === undefined ? "strict" : "within a node";
  return leading === "node" ? "within a node" : "none";
}

function coordinationOf({ counter, nodes }: Shape): Coordination {
  if (counter !== undefined)
    return counter === "for each run" ? "one request for each run" : "one request for each number";
  return nodes?.given ? "a number for each node" : "nothing";
}

function revealsOf({ clock, nodes, counter, sequence }: Shape): readonly Reveals[] {
  const counted = counter !== undefined || (sequence !== undefined && sequence.within !== "clock unit");
  const reveals: Reveals[] = [];
  if (clock !== undefined) reveals.push("when");
  if (nodes !== undefined) reveals.push("where");
  if (counted) reveals.push("how many");
  return reveals.length === 0 ? ["nothing"] : reveals;
}

/** What may happen on any day stands before what needs a restored disk, that before what needs many numbers, and the end of all numbers last. */
function failuresOf({ nodes, counter, sequence, drawn }: Shape): readonly Failure[] {
  const failures: Failure[] = [];
  if (sequence?.within === "clock unit") failures.push("clock goes back");
  if (nodes !== undefined) failures.push("two nodes alike");
  if (counter !== undefined || sequence?.within === "kept") failures.push("counter set back");
  if (drawn.length > 0) failures.push("birthday");
  return [...failures, "space used up"];
}

function numbersInUnit({ nodes, sequence, drawnCount }: Shape): number {
  return Number((nodes?.count ?? 1n) * (sequence?.count ?? 1n) * drawnCount);
}

/** Numbers come at random moments, as many from each node as from the next. */
function repeats(shape: Shape, made: Made): number {
  const total = made.perSecond * made.seconds;
  const { clock, nodes, sequence, counter } = shape;
  if (counter !== undefined || total === 0) return 0;
  if (sequence !== undefined) return twoNodesAlike(shape, made.nodes) * REPEATS_OF_TWINS[sequence.within](shape, made);
  if (clock === undefined) return chanceOfRepeat(shape.count, Math.round(total));
  const buckets = unitsIn(shape, made.seconds) * Math.min(made.nodes, Number(nodes?.count ?? 1n));
  const logsOfNone = shape.drawn.map(({ count, share }) =>
    logOfNoCellTwice(buckets * count, (total / buckets) * share),
  );
  return atLeastOne(logsOfNone.reduce((sum, log) => sum + log, 0));
}

/** Numbers that somebody keeps a list of differ as long as there are enough of them; those that machines take by themselves may not. */
function twoNodesAlike({ nodes }: Shape, count: number): number {
  if (nodes === undefined) return 0;
  if (nodes.hashed) return chanceOfRepeat(nodes.count, Math.round(count));
  return BigInt(Math.ceil(count)) > nodes.count ? 1 : 0;
}

/** The chance of a repeat between two nodes that have the same number. */
const REPEATS_OF_TWINS: Readonly<Record<SequenceScope, (shape: Shape, made: Made) => number>> = {
  /** Both begin at the same value, so one unit in which both make a number is enough. */
  "clock unit": (shape, made) => {
    const busy = atLeastOne(-inUnitOfNode(shape, made));
    return atLeastOne(unitsIn(shape, made.seconds) * Math.log1p(-busy * busy));
  },
  /**
   * They began anywhere. In a unit, m numbers of one and n of the other have one in common for m + n - 1 of all distances of their beginnings.
   * Counted as if they began anew in each unit: rather too likely than not likely enough, as twins that are far apart stay so.
   */
  process: (shape, made) => {
    const inUnit = inUnitOfNode(shape, made);
    const busy = atLeastOne(-inUnit);
    const near = Math.min(1, (2 * inUnit * busy - busy * busy) / Number(shape.sequence?.count));
    return atLeastOne(unitsIn(shape, made.seconds) * Math.log1p(-near));
  },
  kept: () => 1,
  run: () => 0,
};
