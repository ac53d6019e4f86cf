/** What the simulation must catch: a store in doubt goes on at run 1 of the next version. */
import { BURST_RUNS, decide, isRefusal, PHASES, RUN_MAX } from "../product.js";
import type { Variant } from "./variant.js";

/** Whoever advances is believed: a store that forgot an advance leases the same version from its first run on again. */
export const ADVANCE_DENSE: Variant = {
  name: "advance-dense",
  fault: "a store in doubt goes on at run 1 of the next version",
  breaks: "no run is leased twice",
  focus: {
    kinds: ["lease", "wait", "advance", "backUp", "restore", "restartCoordinator"],
    setting: { firstRun: RUN_MAX - 40, isOnLine: false, serverCount: 1, hostCount: 1, witness: "none" },
  },
  decide(situation, command) {
    const decision = decide(situation, command);
    if (command.step !== "advance" || isRefusal(decision)) return decision;
    return { ...decision, record: { ...decision.record, phase: PHASES.open } };
  },
};

/**
 * The line of the next version begins 65,536 runs before this one's ends, so that something of it can be leased already; and a store that
 * forgot that settles its doubt in this version, below the end, and advances densely once more.
 */
export const ADVANCE_EARLY: Variant = {
  name: "advance-early",
  fault: "a version may be ended before its clock line has reached the last run",
  breaks: "no run is leased twice",
  focus: {
    kinds: ["lease", "wait", "advance", "backUp", "restore", "restartCoordinator"],
    setting: {
      firstRun: RUN_MAX - BURST_RUNS - 4_000,
      isOnLine: false,
      ageMs: 0,
      rate: 1,
      serverCount: 1,
      hostCount: 1,
      witness: "none",
    },
  },
  decide(situation, command) {
    if (command.step !== "advance") return decide(situation, command);
    const decision = decide(situation, command);
    if (!isRefusal(decision) || decision.word !== "EARLY") return decision;
    const touched = decide(situation, { ...command, step: "touch" });
    if (isRefusal(touched)) return decision;
    const { record } = touched;
    const next = { version: record.version + 1, highWaterMark: 0, generation: record.generation + 1 };
    return { record: { ...record, ...next }, runCount: 0 };
  },
};
