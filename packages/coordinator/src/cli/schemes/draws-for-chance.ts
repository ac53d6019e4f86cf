/** How many may be drawn before a repeat has a given chance. */
import { chanceOfRepeat } from "@callnumber/schemes";

/** The fewest draws of `space` values among which a repeat has at least that chance (above 0, below 1). Beyond 2^53 draws to the digits of a double. */
export function drawsForChance(space: bigint, chance: number): number {
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
