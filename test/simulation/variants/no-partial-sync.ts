/** What the simulation must catch: a replica that comes back by a partial resynchronisation makes no new epoch. */
import type { Variant } from "./variant.js";

/**
 * The epoch without `sync_partial_ok`, as it was until this suite ran for the first time: a replica that acknowledged another master's claim,
 * lost it in a crash and came back from its RDB made an old master lease again that had never been in doubt.
 */
export const NO_PARTIAL_SYNC: Variant = {
  name: "no-partial-sync",
  fault: "a replica that comes back by a partial resynchronisation makes no new epoch",
  breaks: "no run is leased twice",
  focus: {
    kinds: ["lease", "lease", "lease", "moment", "wait", "failOver", "comeBack"],
    setting: { serverCount: 3, hostCount: 2, isOnLine: false, ageMs: 0, rate: 1, firstRun: 1 },
  },
  epochOf: (epoch) => epoch.split(":").slice(0, 3).join(":"),
};
