/** Draws that come again with the same seed. */
import { seededBelow } from "../faults/seeded-random.js";

export interface Draw {
  /** 0 to before `below`. */
  below(below: number): number;
  oneOf<T>(choices: readonly T[]): T;
  /** True once in `times`, on average. */
  onceIn(times: number): boolean;
}

export function drawsOf(seed: number): Draw {
  const below = seededBelow(seed);
  return {
    below,
    oneOf: (choices) => {
      if (choices.length === 0) throw new RangeError("there is nothing to choose from");
      return choices[below(choices.length)] as (typeof choices)[number];
    },
    onceIn: (times) => below(times) === 0,
  };
}
