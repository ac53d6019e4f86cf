/** What the simulation must catch: a range is counted back from the new mark, also when it was cut short. */
import { decide, isRefusal } from "../product.js";
import type { Variant } from "./variant.js";

/**
 * The range counted back from the new mark by as many runs as were asked: when it was cut short, because room or run space are scarce,
 * it begins below the old mark.
 */
export const RANGE_BACKWARDS: Variant = {
  name: "range-backwards",
  fault: "a range is counted back from the new mark, also when it was cut short",
  breaks: "no run is leased twice",
  decide(situation, command) {
    const decision = decide(situation, command);
    if (command.step !== "lease" || isRefusal(decision)) return decision;
    return { ...decision, runCount: Math.min(command.runCount, decision.record.highWaterMark) };
  },
};
