/**
 * The birthday problem: how likely two of some random values are the same. Exact to the digits of a double. `space` and `drawn` are whole
 * numbers up to the greatest double: there is at least one value to draw.
 */

/** The chance that `drawn` draws of `space` equally likely values are not all different; 1 where there are more draws than values. */
export function chanceOfRepeat(space: number, drawn: number): number {
  if (drawn > space) return 1;
  return atLeastOne(drawn <= SUMMED_UP_TO ? sumOfLogs(space, drawn) : stirling(space, drawn));
}

/** The rule of thumb that most documents print, 1 - e^(-n(n-1)/2s). Too small by some per cent where the chance is large. */
export function approximateChanceOfRepeat(space: number, drawn: number): number {
  return atLeastOne((-drawn * (drawn - 1)) / (2 * space));
}

/**
 * The fewest draws of `space` values among which a repeat has at least that chance (above 0, below 1). Beyond 2^53 draws to the digits of
 * a double.
 */
export function drawsForChance(space: number, chance: number): number {
  let few = 1;
  let enough = 2;
  while (chanceOfRepeat(space, enough) < chance) {
    few = enough;
    enough *= 2;
  }
  for (;;) {
    const middle = Math.floor((few + enough) / 2);
    if (middle <= few || middle >= enough) return enough;
    if (chanceOfRepeat(space, middle) < chance) few = middle;
    else enough = middle;
  }
}

/**
 * The logarithm of the chance that none of `cells` cells gets more than one of the numbers that come at random moments, `mean` of them to a
 * cell on average: e^-x (1 + x) for each cell.
 */
export function logOfNoCellTwice(cells: number, mean: number): number {
  return cells * log1pLess(mean);
}

/** The chance of at least one, where `logOfNone` is the logarithm of the chance of none. Never -0. */
export function atLeastOne(logOfNone: number): number {
  return 0 - Math.expm1(logOfNone);
}

/** Near 0, the difference of two nearly equal terms has lost its digits, and their series ends early. */
const SERIES_BELOW = 0.1;
const TERM_COUNT = 20;

/** ln(1 + x) - x. */
export function log1pLess(x: number): number {
  if (Math.abs(x) > SERIES_BELOW) return Math.log1p(x) - x;
  let sum = 0;
  for (let power = TERM_COUNT; power >= 2; power--) sum = x * (sum + (power % 2 === 0 ? -1 : 1) / power);
  return x * sum;
}

/** e^x - 1 - x. */
export function expm1Less(x: number): number {
  if (Math.abs(x) > SERIES_BELOW) return Math.expm1(x) - x;
  let sum = 0;
  for (let power = TERM_COUNT; power >= 2; power--) sum = (x / power) * (1 + sum);
  return x * sum;
}

/** Up to here logarithms are summed one by one; for more draws, Stirling's series is as exact. */
const SUMMED_UP_TO = 100_000;

/** The smallest terms come first, so that they count. */
function sumOfLogs(space: number, drawn: number): number {
  let sum = 0;
  let lost = 0;
  for (let before = 1; before < drawn; before++) {
    const term = Math.log1p(-before / space) - lost;
    const next = sum + term;
    lost = next - sum - term;
    sum = next;
  }
  return sum;
}

/** ln(s! / (s-n)! / s^n). The first correction of the series would be below the last digit wherever the chance is not 1. */
function stirling(space: number, drawn: number): number {
  const part = drawn / space;
  if (part === 1) return Number.NEGATIVE_INFINITY;
  return -space * ((1 - part) * log1pLess(-part) + part ** 2) - Math.log1p(-part) / 2;
}
