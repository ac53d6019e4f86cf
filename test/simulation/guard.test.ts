/**
 * The guard in simulated histories, next to the control, which has no guard. The longer run is `npm run simulate`.
 * Guarantees: G1, G2, G3, G4, G10, G12, G13 (docs/guarantees.md).
 */
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { sized } from "../size-of-run.js";
import { type Campaign, reportOf, runCampaign, STEP_COUNT } from "./campaign.js";
import { THE_GUARD } from "./variants.js";

const HISTORY_COUNT = sized(80, 1_500);

describe(`in ${HISTORY_COUNT} simulated histories of ${STEP_COUNT} steps`, () => {
  const seed = inject("seed");
  let campaign: Campaign;

  beforeAll(async () => {
    const rules = { variant: THE_GUARD, lifted: new Set<never>() };
    campaign = await runCampaign({ seed, historyCount: HISTORY_COUNT, rules });
  });

  afterAll(() => {
    console.log(`Simulated from seed ${seed}:\n${campaign?.seen}`);
  });

  test("no run is leased twice, downwards or above the ceiling, errors are documented, and leasing continues", () => {
    expect.assert(campaign.broken === undefined, campaign.broken && reportOf(campaign.broken));
    expect(campaign.seen.historyCount).toBe(HISTORY_COUNT);
    expect(campaign.seen.stepCount).toBe(HISTORY_COUNT * STEP_COUNT);
  });

  test("the control repeats, and long runs play every kind of step and meet every refusal: else nothing was proved", () => {
    expect(campaign.seen.gaps).toEqual([]);
  });
});
