/** What a step of minting takes from its context, checked: a wrong answer of the outside would spill into the field above. */
import { mustFit } from "./layout.js";
import type { MintContext } from "./mint-context.js";
import { SchemeError } from "./scheme-error.js";

/** What is known of a step while the fields are being filled. */
export interface Moment {
  readonly context: MintContext;
  /** The unit of the clock in which this step stands; undefined where there is no clock field. */
  readonly unit: number | undefined;
  /** When the next unit begins. */
  readonly nextUnitMs: number;
  /** The values of the nodes, for state that belongs to one of them. */
  readonly nodes: readonly bigint[];
  /** Before each name in a memory, so that schemes can share one. */
  readonly scheme: string;
}

/** The next answer of the central counter. @throws SchemeError `space_used_up` where the fields can't hold it. */
export function fromCounter({ counter }: MintContext, capacity: bigint): bigint {
  const value = counter.next();
  if (value < 1n) throw new RangeError(`a counter must answer whole numbers from 1 on, not ${value}`);
  if (value >= capacity)
    throw new SchemeError("space_used_up", `the counter is at ${value}, the greatest is ${capacity - 1n}`);
  return value;
}

/** A random number that the context answers; checked, as a wrong one would spill into the field above. */
export function drawn({ random }: MintContext, bound: number): number {
  return Number(mustFit("a random number", random.below(bound), BigInt(bound)));
}
