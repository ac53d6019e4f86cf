/** The birthday, by its mean: not how likely any repeat is, but how many there are. */

/** So many values, each with this share of the chance. */
export interface ValueClass {
  readonly count: number;
  readonly share: number;
}

/** How many of `drawn` values were drawn before, on average: the draws less the different values among them. Exact to the digits of a double. */
export function expectedRepeats(classes: readonly ValueClass[], drawn: number): number {
  return classes.reduce((sum, { count, share }) => sum + count * repeatsOfOne(share, drawn), 0);
}

/** Below, the difference of two nearly equal terms has lost its digits, and their series ends early. */
const SERIES_BELOW = 0.1;
const TERM_COUNT = 20;

/** Of one value: how often it is drawn, less the chance that it is drawn at all; np - 1 + (1-p)^n. */
function repeatsOfOne(share: number, drawn: number): number {
  const mean = drawn * share;
  if (mean > SERIES_BELOW) return mean + Math.expm1(drawn * Math.log1p(-share));
  let sum = 0;
  let term = mean;
  for (let power = 2; power <= TERM_COUNT && power <= drawn; power++) {
    term *= (-share * (drawn - power + 1)) / power;
    sum -= term;
  }
  return sum;
}
