/** The probabilities that the comparison shows: of a repeat, and of naming a number that was made. Each for the shape of a scheme, and a load. */
import { atLeastOne, chanceOfRepeat, expm1Less, logOfNoCellTwice } from "./birthday.js";
import type { SequenceScope } from "./fields.js";
import type { Shape } from "./shape.js";

/** How much a scheme is used. */
export interface Load {
  /** Numbers made a second, by all nodes together; 0 or more. */
  readonly perSecond: number;
  readonly seconds: number;
  /** 1 or more. */
  readonly nodes: number;
}

/** Of at least one repeat; `Facts.repeats` has the conditions. */
export function repeatChance(shape: Shape, load: Load): number {
  const { clock, nodes, sequence, counter, drawn } = shape;
  const total = load.perSecond * load.seconds;
  if (counter !== undefined || total === 0) return 0;
  if (sequence !== undefined) {
    return nodesAlikeChance(shape, load.nodes) * REPEAT_OF_TWINS[sequence.within](shape, load);
  }
  if (clock === undefined) return chanceOfRepeat(shape.count, Math.round(total));
  const cells = unitsIn(shape, load.seconds) * Math.min(load.nodes, nodes?.count ?? 1);
  const logsOfNone = drawn.map(({ count, share }) => logOfNoCellTwice(cells * count, (total / cells) * share));
  return atLeastOne(logsOfNone.reduce((sum, log) => sum + log, 0));
}

/** Assigned node numbers differ as long as there are enough of them; those that machines derive may not. */
function nodesAlikeChance({ nodes }: Shape, count: number): number {
  if (nodes === undefined) return 0;
  if (nodes.isHashed) return chanceOfRepeat(nodes.count, Math.round(count));
  return count > nodes.count ? 1 : 0;
}

/** The probability of a repeat between two nodes that have the same number. */
const REPEAT_OF_TWINS: Readonly<Record<SequenceScope, (shape: Shape, load: Load) => number>> = {
  /** Both start at the same value, so one unit in which both generate a number is enough. */
  "clock unit": (shape, load) => {
    const busy = atLeastOne(-perNodeAndUnit(shape, load));
    return atLeastOne(unitsIn(shape, load.seconds) * Math.log1p(-busy * busy));
  },
  /**
   * Each started at a random value. In a unit, m numbers of one and n of the other have one in common for m + n - 1 of all distances of their
   * starts. Counted as if they started again in each unit: rather too likely than too unlikely, because twins that are far apart stay so.
   */
  process: (shape, load) => {
    const perUnit = perNodeAndUnit(shape, load);
    const busy = atLeastOne(-perUnit);
    const near = Math.min(1, (2 * perUnit * busy - busy * busy) / (shape.sequence?.count ?? 1));
    return atLeastOne(unitsIn(shape, load.seconds) * Math.log1p(-near));
  },
  kept: () => 1,
  run: () => 0,
};

/** The guess is the first number of a count, of a node and of a unit, else the likeliest value that is drawn. */
export function guessChance(shape: Shape, load: Load): number {
  const { clock, nodes, sequence, counter, drawn } = shape;
  const total = load.perSecond * load.seconds;
  if (counter !== undefined) return Math.min(1, total);
  if (clock === undefined && drawn.length > 0) return drawnByOneOf(shape, total);
  const nodeCount = nodes?.count ?? 1;
  // A node that counts from the first number on has made it, if that node exists.
  if (clock === undefined) return total === 0 ? 0 : Math.min(1, load.nodes / nodeCount);
  const cells = unitsIn(shape, 1) * nodeCount * (sequence?.within === "process" ? sequence.count : 1);
  return atLeastOne((-load.perSecond / cells) * likeliestShare(shape));
}

/** The number that is read shows its node and its unit, so neither has to be guessed. It is any of those made, early or late. */
export function neighborChance(shape: Shape, load: Load): number {
  const { clock, sequence, counter, drawn } = shape;
  const total = load.perSecond * load.seconds;
  if (total === 0) return 0;
  if (counter !== undefined) return total < 2 ? 0 : 1;
  if (sequence !== undefined) return NEIGHBOR_WITHIN[sequence.within](perExistingNode(shape, load), load);
  if (clock === undefined && drawn.length > 0) return drawnByOneOf(shape, Math.max(0, total - 1));
  // The one after it, unless it is the last of its unit.
  if (shape.rises) return notFirst(perNodeAndUnit(shape, load));
  return atLeastOne(-perExistingNode(shape, load) * likeliestShare(shape));
}

/** The probability that the number which is named was made. `perUnit`: numbers of a node in a unit of the clock. */
const NEIGHBOR_WITHIN: Readonly<Record<SequenceScope, (perUnit: number, load: Load) => number>> = {
  /** The one before, unless this one is the first of its unit; then the first of the next unit. */
  "clock unit": (perUnit) => Math.min(1, notFirst(perUnit) + atLeastOne(-perUnit) ** 2 / perUnit),
  /** The one before has the count before; it was made in the same unit, or in the one before that: the likelier is named. */
  process: (perUnit) => Math.max(notFirst(perUnit), atLeastOne(-perUnit) ** 2 / perUnit),
  kept: (_, { perSecond, seconds, nodes }) => (perSecond * seconds < 2 * nodes ? 0 : 1),
  run: () => 1,
};

/** The part of a node's numbers that are not the first of their unit: 1 - (1 - e^-x) / x for x numbers in a unit. */
function notFirst(perUnit: number): number {
  return expm1Less(-perUnit) / perUnit;
}

function drawnByOneOf(shape: Shape, draws: number): number {
  return atLeastOne(draws * Math.log1p(-likeliestShare(shape)));
}

function likeliestShare({ drawn }: Shape): number {
  return drawn.length === 0 ? 1 : Math.max(...drawn.map(({ share }) => share));
}

/** How many units of the clock a time has; 1 without a clock. */
export function unitsIn({ clock }: Shape, seconds: number): number {
  return clock === undefined ? 1 : (seconds * 1_000) / clock.unitMs;
}

/** How many numbers a node makes in a unit of the clock, on average. */
function perNodeAndUnit(shape: Shape, { perSecond, nodes }: Load): number {
  return perSecond / nodes / unitsIn(shape, 1);
}

/** Nodes beyond those that can exist share the numbers of others. */
function perExistingNode(shape: Shape, load: Load): number {
  return perNodeAndUnit(shape, { ...load, nodes: Math.min(load.nodes, shape.nodes?.count ?? 1) });
}
