/** What the simulation must catch: a doubt raises the counter by the record's age times the rate, instead of onto the line. */
import { BURST_RUNS, decide, isRefusal } from "../product.js";
import type { Variant } from "./variant.js";

/**
 * The first design: a doubt raises the counter by what can have been leased since the record was written, its age times the rate, and the
 * burst. A jump itself moves the counter, and is forgotten with everything else: a second rollback lands inside the first jump.
 */
export const AGE_TIMES_RATE: Variant = {
  name: "age-times-rate",
  fault: "a doubt raises the counter by the record's age times the rate, instead of onto the line",
  breaks: "no run is leased twice",
  focus: {
    groups: ["crashes", "hosts"],
    setting: { serverCount: 1, isOnLine: false, firstRun: 1, ageMs: 20 * 24 * 3_600_000, rate: 16 },
  },
  decide(situation, command) {
    const decision = decide(situation, command);
    if (command.step !== "confirm" || isRefusal(decision)) return decision;
    const { record } = decision;
    const before = Number(situation.keys.fields["c"]);
    const ageMs = record.changedAtMs - Number(situation.keys.fields["t"]) + 2 * situation.bounds.epsMs;
    const jump = BURST_RUNS + Math.ceil((ageMs * record.id.rate) / 1000);
    return { ...decision, record: { ...record, highWaterMark: Math.max(before, command.floor) + jump } };
  },
};
