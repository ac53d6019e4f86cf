/** Whether what was seen can be by chance, if the theory is right. */
import type { Theory } from "./theory.js";

/** Of the deviations that chance brings: further away is rarer than about one in a million, whatever the mean. */
const SIGMA_COUNT = 5;

/**
 * Where the theory is certain, seen must be what is expected. Else by Chernoff's bound on how far a count of rare events strays from its mean,
 * which is e^(-d²/2) for d standard deviations, and right for few events, too.
 */
export function isPlausible(seen: number, { kind, expected, together }: Theory): boolean {
  if (kind !== "birthday") return seen === expected;
  return strayed(seen / together, expected / together) <= SIGMA_COUNT ** 2 / 2;
}

function strayed(seen: number, mean: number): number {
  if (seen === 0) return mean;
  return seen * Math.log(seen / mean) - seen + mean;
}
