/** A history that fails is made shorter, and can be played again. */
import { expect, inject, test } from "vitest";
import { brokenBy, runCampaign, STEP_COUNT } from "./campaign.js";
import type { History } from "./history.js";
import { play } from "./play.js";
import { NO_EPOCH } from "./variants/no-epoch.js";
import { THE_GUARD } from "./variants/variant.js";

const HISTORY_COUNT_MAX = 5_000;

test("makes a failing history shorter, and plays it again from JSON", async () => {
  const { breaks: promise, focus = {} } = NO_EPOCH;
  const rules = { variant: NO_EPOCH, lifted: new Set<never>() };
  const found = { seed: inject("seed"), historyCount: HISTORY_COUNT_MAX, rules, focus, shrinks: true };
  const { broken } = await runCampaign({ ...found, ...(promise === undefined ? {} : { promise }) });
  if (broken === undefined) return expect.unreachable("the variant is caught");
  expect(broken.history.steps.length).toBeLessThan(STEP_COUNT / 2);
  const history = JSON.parse(JSON.stringify(broken.history)) as History;
  const again = await brokenBy(history, { variant: NO_EPOCH, lifted: new Set() });
  expect(again.story).toEqual(broken.story);
  expect(again.violation).toEqual(broken.violation);
  const { violation } = await play(history, { variant: THE_GUARD, lifted: new Set() });
  expect(violation).toBeUndefined();
});
