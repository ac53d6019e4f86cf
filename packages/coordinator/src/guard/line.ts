/**
 * The clock line of a store: above it no run is ever leased, so everything leased so far lies below, whatever was forgotten.
 * It follows from the store id alone: whoever pins the id, pins the line. lua/record.lua says the same for Redis.
 * Guarantees: G2 (docs/guarantees.md).
 */
import { RUN_MAX } from "@callnumber/protocol/codec";
import type { StoreIdFields } from "../store-id.js";
import { BURST_RUNS } from "./bounds.js";

/**
 * The greatest run of a version that may be leased at an instant; may lie beyond the run space, or below its first run.
 * A version's line begins where the one before has passed the end of its run space: no earlier, so that a store which
 * forgot that it advanced can't advance onto a lower line.
 */
export function lineAt(id: StoreIdFields, version: number, timeMs: number): number {
  return startOf(id, version) + Math.floor(((timeMs - beginOf(id, version)) * id.rate) / 1000) + BURST_RUNS;
}

/** The first instant at which `lineAt` is at least `run`. */
export function whenLineReaches(id: StoreIdFields, version: number, run: number): number {
  return beginOf(id, version) + Math.ceil(((run - startOf(id, version) - BURST_RUNS) * 1000) / id.rate);
}

function startOf({ firstVersion, firstRun }: StoreIdFields, version: number): number {
  return version === firstVersion ? firstRun : 1;
}

function beginOf(id: StoreIdFields, version: number): number {
  if (version <= id.firstVersion) return id.initialisedAtMs;
  return whenLineReaches(id, version - 1, RUN_MAX);
}
