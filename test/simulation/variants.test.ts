/** What the simulation is worth: every design that is known to be wrong is caught, from the seed of the run and from others. */
import { describe, expect, inject, test } from "vitest";
import { sized } from "../size-of-run.js";
import { runCampaign } from "./campaign.js";
import { LIMITS, type LimitName } from "./limits.js";
import { THE_GUARD, VARIANTS, type Variant } from "./variants.js";

/** In the part of all histories that a variant names, most are caught within some hundred. */
const HISTORY_COUNT_MAX = 5_000;
const SEED_COUNT = sized(1, 2);
const NONE: ReadonlySet<LimitName> = new Set();

function search(variant: Variant, seed: number, historyCount: number) {
  const { breaks: promise, focus = {} } = variant;
  const rules = { variant, lifted: NONE };
  return runCampaign({
    seed,
    historyCount,
    rules,
    focus,
    shrinks: false,
    ...(promise === undefined ? {} : { promise }),
  });
}

describe("the simulation", () => {
  const seed = inject("seed");

  test.for(VARIANTS.map((variant) => [variant.name, variant] as const))("catches %s", async ([, variant]) => {
    for (let other = 0; other < SEED_COUNT; other++) {
      const { seen, broken } = await search(variant, seed + other, HISTORY_COUNT_MAX);
      expect(broken?.violation.promise, `${variant.fault}; seed ${seed + other}`).toBe(variant.breaks);
      console.log(`${variant.name}: caught in history ${seen.historyCount} from seed ${seed + other}`);
    }
  });
});

describe("what remains impossible", () => {
  test.for(["clocks-wrong-together", "rollback-nobody-remembers"] as const)(
    "is found where %s is not kept from happening: the limit is no empty word",
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
