/** What somebody can name who was told no number, or one: the figures for who must not guess. */
import { atLeastOne } from "./birthday.js";
import type { Made } from "./facts.js";
import type { SequenceScope } from "./field.js";
import { inUnitOfNode, unitsIn } from "./made.js";
import type { Shape } from "./shape.js";

/** The stranger names the first number of a count, of a node and of a unit, and else the likeliest value that is drawn. */
export function guessed(shape: Shape, made: Made): number {
  const { clock, nodes, sequence, counter, drawn } = shape;
  const total = made.perSecond * made.seconds;
  if (counter !== undefined) return Math.min(1, total);
  if (clock === undefined && drawn.length > 0) return drawnByOneOf(shape, total);
  // Whoever counts from the first number on has made it, if there is that node.
  if (clock === undefined) return total === 0 ? 0 : Math.min(1, made.nodes / Number(nodes?.count ?? 1n));
  const cells =
    unitsIn(shape, 1) * Number(nodes?.count ?? 1n) * (sequence?.within === "process" ? Number(sequence.count) : 1);
  return atLeastOne((-made.perSecond / cells) * likeliestShare(shape));
}

/** The number that is read says its node and its unit, so neither has to be guessed. It is any of those made, early or late. */
export function neighbour(shape: Shape, made: Made): number {
  const { clock, sequence, counter, drawn } = shape;
  const total = made.perSecond * made.seconds;
  if (total === 0) return 0;
  if (counter !== undefined) return total < 2 ? 0 : 1;
  if (sequence !== undefined) return NEIGHBOUR_IN[sequence.within](shape, made);
  if (clock === undefined && drawn.length > 0) return drawnByOneOf(shape, Math.max(0, total - 1));
  return atLeastOne(-eachOfNode(shape, made) * likeliestShare(shape));
}

/** The chance that the number which is named was made. */
const NEIGHBOUR_IN: Readonly<Record<SequenceScope, (shape: Shape, made: Made) => number>> = {
  /** The one before, unless this one is the first of its unit; then the first of the unit beside it. */
  "clock unit": (shape, made) => {
    const each = eachOfNode(shape, made);
    const busy = atLeastOne(-each);
    return Math.min(1, notFirst(each) + (busy * busy) / each);
  },
  /** The one before has the count before; it was made in the same unit, or in the one before that: the likelier is named. */
  process: (shape, made) => {
    const each = eachOfNode(shape, made);
    const busy = atLeastOne(-each);
    return Math.max(notFirst(each), (busy * busy) / each);
  },
  kept: (_, { perSecond, seconds, nodes }) => (perSecond * seconds < 2 * nodes ? 0 : 1),
  run: () => 1,
};

/** The part of a node's numbers that are not the first of their unit, where `each` come to a unit: 1 - (1 - e^-each) / each. */
function notFirst(each: number): number {
  return each < SERIES_BELOW ? each / 2 - (each * each) / 6 : 1 - atLeastOne(-each) / each;
}

/** Below, the difference of two nearly equal figures has lost its digits. */
const SERIES_BELOW = 1e-5;

/** Of a node, in a unit of the clock. Nodes beyond those that there can be share the numbers of others. */
function eachOfNode(shape: Shape, made: Made): number {
  return inUnitOfNode(shape, { ...made, nodes: Math.min(made.nodes, Number(shape.nodes?.count ?? 1n)) });
}

function drawnByOneOf(shape: Shape, draws: number): number {
  return atLeastOne(draws * Math.log1p(-likeliestShare(shape)));
}

function likeliestShare({ drawn }: Shape): number {
  return drawn.length === 0 ? 1 : Math.max(...drawn.map(({ share }) => share));
}
