/** What the simulation is worth: every design that is known to be wrong is caught, from the seed of the run and from others. */
import { describe, expect, inject, test } from "vitest";
import { brokenBy, runCampaign, STEP_COUNT } from "./campaign.js";
import type { History } from "./history.js";
import { LIMITS, type LimitName } from "./limits.js";
import { play } from "./play.js";
import { VARIANTS } from "./variants/all.js";
import { NO_EPOCH } from "./variants/no-epoch.js";
import { THE_GUARD, type Variant } from "./variants/variant.js";

/** In the part of all histories that a variant names, most are caught within some hundred. */
const HISTORY_COUNT_MAX = 5_000;
const SEED_COUNT = 2;
const PATIENCE_MS = 900_000;
const NONE: ReadonlySet<LimitName> = new Set();

function search(variant: Variant, seed: number, historyCount: number, shrinks = false) {
  const { breaks: promise, focus = {} } = variant;
  const rules = { variant, lifted: NONE };
  return runCampaign({ seed, historyCount, rules, focus, shrinks, ...(promise === undefined ? {} : { promise }) });
}

describe("the simulation", () => {
  const seed = inject("seed");

  test.for(VARIANTS.map((variant) => [variant.name, variant] as const))(
    "catches %s",
    { timeout: PATIENCE_MS },
    async ([, variant]) => {
      for (let other = 0; other < SEED_COUNT; other++) {
        const { seen, broken } = await search(variant, seed + other, HISTORY_COUNT_MAX);
        expect(broken?.violation.promise, `${variant.fault}; seed ${seed + other}`).toBe(variant.breaks);
        console.log(`${variant.name}: caught in history ${seen.historyCount} from seed ${seed + other}`);
      }
    },
  );

  test("makes a failing history shorter, and plays it again from JSON", { timeout: PATIENCE_MS }, async () => {
    const { broken } = await search(NO_EPOCH, seed, HISTORY_COUNT_MAX, true);
    if (broken === undefined) return expect.unreachable("the variant is caught");
    expect(broken.history.steps.length).toBeLessThan(STEP_COUNT / 2);
    const history = JSON.parse(JSON.stringify(broken.history)) as History;
    const again = await brokenBy(history, { variant: NO_EPOCH, lifted: NONE });
    expect(again.story).toEqual(broken.story);
    expect(again.violation).toEqual(broken.violation);
    const { violation } = await play(history, { variant: THE_GUARD, lifted: NONE });
    expect(violation).toBeUndefined();
  });
});

describe("what remains impossible", () => {
  test.for(["clocks-wrong-together", "rollback-nobody-remembers"] as const)(
    "is found where %s is not kept from happening: the limit is no empty word",
    { timeout: PATIENCE_MS },
    async (limit) => {
      const rules = { variant: THE_GUARD, lifted: new Set([limit]) };
      const { broken } = await runCampaign({
        seed: inject("seed"),
        historyCount: HISTORY_COUNT_MAX,
        rules,
        focus: LIFTED_FOCUS[limit],
        shrinks: false,
      });
      expect(broken, LIMITS[limit]).toBeDefined();
    },
  );
});

const LIFTED_FOCUS = {
  "clocks-wrong-together": {
    kinds: ["lease", "wait", "setServerClock", "setCoordinatorClock"],
    setting: { serverCount: 1, hostCount: 1, isOnLine: true, firstRun: 1 },
  },
  "rollback-nobody-remembers": { groups: ["rollbacks", "hosts"], setting: { isOnLine: false } },
} as const;
