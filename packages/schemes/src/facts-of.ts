/** The figures of the comparison, computed from the fields. Nothing is typed here that a field says. */
import { chanceOfRepeat, logOfNoCellTwice } from "./birthday.js";
import type { Declaration } from "./declaration.js";
import type { Coordination, Facts, Failure, Order, Reveals } from "./facts.js";
import type { SequenceScope } from "./field.js";
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
    guessed: (madePerSecond) => guessed(shape, madePerSecond),
    lastsSeconds: (madePerSecond) =>
      clock === undefined ? Number(shape.count) / madePerSecond : (clock.unitCount * clock.unitMs) / MS,
    repeats: (made) => repeats(shape, made),
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

function unitsIn({ clock }: Shape, seconds: number): number {
  return clock === undefined ? 1 : (seconds * MS) / clock.unitMs;
}

/** The stranger names the first number of a unit and a node where a sequence begins anew, and else the likeliest value that is drawn. */
function guessed(shape: Shape, madePerSecond: number): number {
  const { clock, nodes, sequence, drawn } = shape;
  if (clock === undefined && drawn.length === 0) return Math.min(1, madePerSecond / Number(shape.count));
  const cells =
    unitsIn(shape, 1) * Number(nodes?.count ?? 1n) * (sequence?.within === "process" ? Number(sequence.count) : 1);
  const likeliest = drawn.length === 0 ? 1 : Math.max(...drawn.map(({ share }) => share));
  return -Math.expm1((-madePerSecond / cells) * likeliest);
}

type Made = Parameters<Facts["repeats"]>[0];

/** Numbers come at random moments, as many from each node as from the next. */
function repeats(shape: Shape, made: Made): number {
  if (!(made.perSecond >= 0 && made.seconds >= 0 && made.nodes >= 1)) {
    throw new RangeError(
      `numbers are made at a rate and for a time from 0, by 1 node or more, not ${JSON.stringify(made)}`,
    );
  }
  if (shape.counter !== undefined) return 0;
  if (shape.sequence !== undefined)
    return twoNodesAlike(shape, made.nodes) * REPEATS_OF_TWINS[shape.sequence.within](shape, made);
  const total = made.perSecond * made.seconds;
  if (shape.clock === undefined) return chanceOfRepeat(shape.count, Math.round(total));
  const nodes = shape.nodes === undefined ? 1 : Math.min(made.nodes, Number(shape.nodes.count));
  const buckets = unitsIn(shape, made.seconds) * nodes;
  return buckets === 0
    ? 0
    : -Math.expm1(
        shape.drawn.reduce(
          (sum, { count, share }) => sum + logOfNoCellTwice(buckets * count, (total / buckets) * share),
          0,
        ),
      );
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
  "clock unit": (shape, { perSecond, seconds, nodes }) => {
    const units = unitsIn(shape, seconds);
    if (units === 0) return 0;
    const busy = -Math.expm1((-perSecond * seconds) / nodes / units);
    return -Math.expm1(units * Math.log1p(-busy * busy));
  },
  /** They began anywhere: each pair of numbers of one unit repeats once in as many as the sequence has values. */
  process: (shape, { perSecond, seconds, nodes }) => {
    const units = unitsIn(shape, seconds);
    if (units === 0) return 0;
    const inUnit = (perSecond * seconds) / nodes / units;
    return -Math.expm1((-units * inUnit * inUnit) / Number(shape.sequence?.count));
  },
  kept: (_, { perSecond, seconds }) => (perSecond * seconds > 0 ? 1 : 0),
  run: () => 0,
};
