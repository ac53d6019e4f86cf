/** Every design that is known to be wrong is caught by the simulation. */
import { expect, inject, test } from "vitest";
import { drawn } from "../size-of-run.js";
import { runCampaign } from "./campaign.js";
import { LIMITS, type LimitName } from "./limits.js";
import { THE_GUARD, VARIANTS } from "./variants.js";

/** In the part of all histories that a variant names, most are caught within some hundred. */
const HISTORY_COUNT_MAX = 5_000;
const NONE: ReadonlySet<LimitName> = new Set();

/** A run tries a ninth of them, and its log shows which. */
const DRAWN = drawn(VARIANTS, 9, inject("seed"));

test.for(DRAWN.map((variant) => [variant.name, variant] as const))(
  "the simulation catches %s",
  async ([name, variant]) => {
    const { fault, focus = {}, breaks: promise = "no run is leased twice" } = variant;
    const seed = inject("seed");
    const options = { seed, historyCount: HISTORY_COUNT_MAX, rules: { variant, lifted: NONE } };
    const { seen, broken } = await runCampaign({ ...options, focus, shrinks: false, promise });
    expect(broken?.violation.promise, `${fault}; seed ${seed}`).toBe(promise);
    console.log(`${name}: caught in history ${seen.historyCount} from seed ${seed}`);
  },
);

test.for(["clocks-wrong-together", "forgotten-rollback"] as const)(
  "the simulation finds a broken promise when the limit %s is lifted",
  async (limit) => {
    const rules = { variant: THE_GUARD, lifted: new Set([limit]) };
    const options = { seed: inject("seed"), historyCount: HISTORY_COUNT_MAX, rules };
    const { broken } = await runCampaign({ ...options, focus: LIFTED_FOCUS[limit], shrinks: false });
    expect(broken, LIMITS[limit]).toBeDefined();
  },
);

const LIFTED_FOCUS = {
  "clocks-wrong-together": {
    kinds: ["lease", "wait", "setServerClock", "setCoordinatorClock"],
    setting: { serverCount: 1, hostCount: 1, isOnLine: true, firstRun: 1 },
  },
  "forgotten-rollback": { groups: ["rollbacks", "hosts"], setting: { isOnLine: false } },
} as const;
