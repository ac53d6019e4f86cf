/** How much was made, as the figures take it: all of it, and of one node in one unit of the clock. */
import type { Made } from "./facts.js";
import type { Shape } from "./shape.js";

const MS = 1_000;

/** @throws RangeError where an amount is below 0, not finite, or there is less than 1 node. */
export function mustBeMade(made: Made): Made {
  mustBeAmount("perSecond", made.perSecond);
  mustBeAmount("seconds", made.seconds);
  if (mustBeAmount("nodes", made.nodes) < 1) throw new RangeError(`nodes must be 1 or more, not ${made.nodes}`);
  return made;
}

/** @throws RangeError below 0, or where it is not finite. */
export function mustBeAmount(name: string, value: number): number {
  if (Number.isFinite(value) && value >= 0) return value;
  throw new RangeError(`${name} must be a number from 0 on, not ${value}`);
}

/** 1 without a clock. */
export function unitsIn({ clock }: Shape, seconds: number): number {
  return clock === undefined ? 1 : (seconds * MS) / clock.unitMs;
}

/** How many numbers a node makes in a unit of the clock, on average. */
export function inUnitOfNode(shape: Shape, { perSecond, nodes }: Made): number {
  return perSecond / nodes / unitsIn(shape, 1);
}
