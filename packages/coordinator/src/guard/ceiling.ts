/**
 * The run ceiling of a store: no run above it is ever leased, so everything leased so far is below it, whatever the store lost. It follows
 * from the store id and a clock: no store is needed to compute it.
 * Guarantees: G2 (docs/guarantees.md).
 */
import { RUN_MAX } from "@callnumber/protocol/codec";
import { CoordinatorError } from "../errors.js";
import type { Bounds } from "./clocks.js";
import { refused } from "./refusals.js";
import { parseStoreId, type StoreIdFields } from "./store-id.js";

/** Runs that may be leased at once, ahead of the slope of the run ceiling: a billion call numbers. */
export const BURST_RUNS = 65_536;
/** A lease takes at most this part of the headroom below the ceiling, so that holders share what is scarce. */
export const ROOM_SHARE = 64;

/**
 * Returns the greatest run of a version that may be leased at an instant; may be above the run space, or below its first run.
 * The ceiling of a version begins where the one before has passed the end of its run space, and no earlier: a store that lost the step to
 * this version can't take it again below what it has leased.
 */
export function ceilingAt(id: StoreIdFields, version: number, timeMs: number): number {
  return firstRunOf(id, version) + Math.floor(((timeMs - beginOf(id, version)) * id.rate) / 1000) + BURST_RUNS;
}

/** Returns the first instant at which `ceilingAt` is at least `run`. */
export function whenCeilingReaches(id: StoreIdFields, version: number, run: number): number {
  return beginOf(id, version) + Math.ceil(((run - firstRunOf(id, version) - BURST_RUNS) * 1000) / id.rate);
}

/** Returns how many runs above a high-water mark may be leased at an instant, by ceiling and run space. */
export function headroomAt(id: StoreIdFields, version: number, highWaterMark: number, timeMs: number): number {
  return Math.max(Math.min(ceilingAt(id, version, timeMs), RUN_MAX) - highWaterMark, 0);
}

/** Run 0 of a version is never leased; the first version may begin above run 1, for an archive that has numbers already. */
export function firstRunOf(
  { firstVersion, firstRun }: Pick<StoreIdFields, "firstVersion" | "firstRun">,
  version: number,
): number {
  return version === firstVersion ? firstRun : 1;
}

function beginOf(id: StoreIdFields, version: number): number {
  if (version <= id.firstVersion) return id.initializedAtMs;
  return whenCeilingReaches(id, version - 1, RUN_MAX);
}

/** Refusals that are further apart belong to two shortages, ms. */
const SHORTAGE_GAP_MS = 60_000;
/** At the lowest rate, a run a second. */
const NEXT_RUN_MS_MAX = 1_000;

export interface CeilingMonitorOptions {
  readonly namespace: string;
  readonly bounds: Bounds;
  readonly now: () => number;
}

interface Mark {
  readonly storeId: string;
  readonly version: number;
  readonly highWaterMark: number;
}

/**
 * What the ceiling means for the leases of a namespace now: the headroom, for how long the ceiling has limited leasing, and when waiting does
 * not help. Decides nothing that a store does not refuse already.
 */
export class CeilingMonitor {
  readonly #options: CeilingMonitorOptions;
  /** The first and the latest refusal because all runs up to the ceiling are leased. */
  #shortage: { readonly sinceMs: number; readonly untilMs: number } | undefined;

  constructor(options: CeilingMonitorOptions) {
    this.#options = options;
  }

  /** For how long the ceiling has limited leasing; 0 when it does not now. */
  get shortageMs(): number {
    const { sinceMs, untilMs } = this.#shortage ?? { sinceMs: 0, untilMs: Number.NEGATIVE_INFINITY };
    return this.#options.now() - untilMs > SHORTAGE_GAP_MS ? 0 : untilMs - sinceMs;
  }

  headroomAbove({ storeId, version, highWaterMark }: Mark): number {
    const id = parseStoreId(storeId);
    return id === undefined ? 0 : headroomAt(id, version, highWaterMark, this.#options.now());
  }

  /** How long until the next run is below the ceiling, by this coordinator's clock. */
  waitMsAfter({ storeId, version, highWaterMark }: Mark): number {
    const id = parseStoreId(storeId);
    return id === undefined ? 0 : Math.max(whenCeilingReaches(id, version, highWaterMark + 1) - this.#options.now(), 0);
  }

  /** @throws CoordinatorError `manual_recovery_required` for a mark so far above the ceiling that no clock explains it. */
  assertNear(mark: Mark): void {
    const waitMs = this.waitMsAfter(mark);
    if (this.#isFar(waitMs)) throw this.#operatorNeeded(waitMs);
  }

  /** Notes the error of a step. Returns `manual_recovery_required` for a refusal at the ceiling that waiting does not end, else the error. */
  noteRefusal(error: unknown): unknown {
    if (!(error instanceof CoordinatorError) || error.code !== "run_ceiling_reached") return error;
    const { retryAfterMs: waitMs = 0 } = error;
    if (this.#isFar(waitMs)) return this.#operatorNeeded(waitMs);
    const nowMs = this.#options.now();
    const { sinceMs, untilMs } = this.#shortage ?? { sinceMs: nowMs, untilMs: nowMs };
    this.#shortage = { sinceMs: nowMs - untilMs > SHORTAGE_GAP_MS ? nowMs : sinceMs, untilMs: nowMs };
    return error;
  }

  /** Our steps leave the mark at most 2 eps ahead of the later clock, and each clock is believed within eps. */
  #isFar(waitMs: number): boolean {
    return waitMs > 5 * this.#options.bounds.epsMs + NEXT_RUN_MS_MAX;
  }

  #operatorNeeded(waitMs: number): CoordinatorError {
    return refused("OPERATOR", `line ${this.#options.now() + waitMs}`, this.#options.namespace);
  }
}
