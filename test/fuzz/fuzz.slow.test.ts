/** The short form of the fuzzing: `npm run fuzz` is the long one. */
import { inject, test } from "vitest";
import { fuzz, TARGETS } from "./campaign.js";

test.each(TARGETS)("$name: none of $shortCount drawn inputs breaks what must hold", async (target) => {
  await fuzz(target, inject("seed"), (number) => number < target.shortCount);
});
