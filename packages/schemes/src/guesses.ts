/** What a person can name who knows no number, or one: figures for archives whose numbers must not be guessed. */
import { atLeastOne } from "./birthday.js";
import type { SequenceScope } from "./field.js";
import { type Load, perNodeAndUnit, type Shape, unitsIn } from "./shape.js";

/** The guess is the first number of a count, of a node and of a unit, else the likeliest value that is drawn. */
export function guessChance(shape: Shape, load: Load): number {
  const { clock, nodes, sequence, counter, drawn } = shape;
  const total = load.perSecond * load.seconds;
  if (counter !== undefined) return Math.min(1, total);
  if (clock === undefined && drawn.length > 0) return drawnByOneOf(shape, total);
  // A node that counts from the first number on has made it, if that node exists.
  if (clock === undefined) return total === 0 ? 0 : Math.min(1, load.nodes / Number(nodes?.count ?? 1n));
  const cells =
    unitsIn(shape, 1) * Number(nodes?.count ?? 1n) * (sequence?.within === "process" ? Number(sequence.count) : 1);
  return atLeastOne((-load.perSecond / cells) * likeliestShare(shape));
}

/** The number that is read shows its node and its unit, so neither has to be guessed. It is any of those made, early or late. */
export function neighborChance(shape: Shape, load: Load): number {
  const { clock, sequence, counter, drawn } = shape;
  const total = load.perSecond * load.seconds;
  if (total === 0) return 0;
  if (counter !== undefined) return total < 2 ? 0 : 1;
  if (sequence !== undefined) return NEIGHBOR_WITHIN[sequence.within](shape, load);
  if (clock === undefined && drawn.length > 0) return drawnByOneOf(shape, Math.max(0, total - 1));
  return atLeastOne(-perExistingNode(shape, load) * likeliestShare(shape));
}

/** The probability that the number which is named was made. */
const NEIGHBOR_WITHIN: Readonly<Record<SequenceScope, (shape: Shape, load: Load) => number>> = {
  /** The one before, unless this one is the first of its unit; then the first of the next unit. */
  "clock unit": (shape, load) => {
    const perUnit = perExistingNode(shape, load);
    const busy = atLeastOne(-perUnit);
    return Math.min(1, notFirst(perUnit) + (busy * busy) / perUnit);
  },
  /** The one before has the count before; it was made in the same unit, or in the one before that: the likelier is named. */
  process: (shape, load) => {
    const perUnit = perExistingNode(shape, load);
    const busy = atLeastOne(-perUnit);
    return Math.max(notFirst(perUnit), (busy * busy) / perUnit);
  },
  kept: (_, { perSecond, seconds, nodes }) => (perSecond * seconds < 2 * nodes ? 0 : 1),
  run: () => 1,
};

/** Below, the difference of two nearly equal figures has lost its digits. */
const SERIES_BELOW = 1e-5;

/** The part of a node's numbers that are not the first of their unit: 1 - (1 - e^-x) / x for x numbers in a unit. */
function notFirst(perUnit: number): number {
  return perUnit < SERIES_BELOW ? perUnit / 2 - (perUnit * perUnit) / 6 : 1 - atLeastOne(-perUnit) / perUnit;
}

/** Nodes beyond those that can exist share the numbers of others. */
function perExistingNode(shape: Shape, load: Load): number {
  return perNodeAndUnit(shape, { ...load, nodes: Math.min(load.nodes, Number(shape.nodes?.count ?? 1n)) });
}

function drawnByOneOf(shape: Shape, draws: number): number {
  return atLeastOne(draws * Math.log1p(-likeliestShare(shape)));
}

function likeliestShare({ drawn }: Shape): number {
  return drawn.length === 0 ? 1 : Math.max(...drawn.map(({ share }) => share));
}
