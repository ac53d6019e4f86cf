/** The short form of the fuzzing: `npm run fuzz` is the long one. */
import { expect, inject, test } from "vitest";
import { FINDINGS_FOLDER, runCampaign, savedFinding } from "./campaign.js";
import { TARGETS } from "./targets.js";

test.each(TARGETS)("$name: none of $shortCount drawn inputs breaks what must hold", async (target) => {
  const { finding } = await runCampaign(target, {
    seed: inject("seed"),
    goesOn: (number) => number < target.shortCount,
  });
  expect.assert(finding === undefined, finding && savedFinding(finding, FINDINGS_FOLDER));
});
