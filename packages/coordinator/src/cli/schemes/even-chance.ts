/** When a repeat has become as likely as none: the figure behind every "certain". */
import type { Facts } from "@callnumber/schemes";
import type { Load } from "./load.js";

const EVEN = 0.5;
/** From a microsecond to more than there is of any time, in powers of e. */
const FROM_LOG_S = Math.log(1e-6);
const TO_LOG_S = Math.log(1e30);
/** Of the logarithm: three digits of the time. */
const PRECISION = 1e-4;

/** In seconds, at this rate and from so many nodes; undefined where it never is. */
export function evenChanceAfter({ repeats }: Facts, { perSecond, nodes }: Omit<Load, "seconds">): number | undefined {
  const isLikely = (log: number) => repeats({ perSecond, nodes, seconds: Math.exp(log) }) >= EVEN;
  if (!isLikely(TO_LOG_S)) return undefined;
  let [before, after] = [FROM_LOG_S, TO_LOG_S];
  while (after - before > PRECISION) {
    const middle = (before + after) / 2;
    if (isLikely(middle)) after = middle;
    else before = middle;
  }
  return Math.exp(after);
}
