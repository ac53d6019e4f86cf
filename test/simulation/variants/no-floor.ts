/** What the simulation must catch: the store is not told what the coordinator remembers. */
import { decide } from "../product.js";
import type { Variant } from "./variant.js";

/** The store is told nothing of what the coordinator remembers: a record put back into the running server is believed. */
export const NO_FLOOR: Variant = {
  name: "no-floor",
  fault: "the store is not told what the coordinator remembers",
  breaks: "no run is leased twice",
  focus: { groups: ["rollbacks"], setting: { isOnLine: false } },
  decide(situation, command) {
    const forgetful = {
      ...command,
      ...("floor" in command ? { floor: 0 } : {}),
      ...("generationMin" in command ? { generationMin: 0 } : {}),
    };
    return decide(situation, forgetful as typeof command);
  },
};
