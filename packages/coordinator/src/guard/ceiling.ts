/**
 * What the clock line means for the leases of a namespace now: how many runs are free, for how long leases have been refused there, and
 * when waiting does not help. Decides nothing that a store does not refuse already.
 */

import { RUN_MAX } from "@callnumber/protocol/codec";
import { CoordinatorError } from "../errors.js";
import { parseStoreId, type StoreIdFields } from "../store-id.js";
import { type Bounds, BURST_RUNS } from "./bounds.js";
import { refused } from "./refusals.js";

/** Refusals that are further apart are two shortages, ms. */
const SHORTAGE_GAP_MS = 60_000;
/** At the lowest rate, a run a second. */
const NEXT_RUN_MS_MAX = 1_000;

export interface LineWatchOptions {
  readonly namespace: string;
  readonly bounds: Bounds;
  readonly now: () => number;
}

interface Mark {
  readonly storeId: string;
  readonly version: number;
  readonly highWaterMark: number;
}

export class CeilingMonitor {
  readonly #options: LineWatchOptions;
  /** The first and the latest refusal because all runs up to the line are leased. */
  #shortage: { readonly sinceMs: number; readonly untilMs: number } | undefined;

  constructor(options: LineWatchOptions) {
    this.#options = options;
  }

  /** For how long the line has limited leasing; 0 when it does not now. */
  get shortageMs(): number {
    const { sinceMs, untilMs } = this.#shortage ?? { sinceMs: 0, untilMs: Number.NEGATIVE_INFINITY };
    return this.#options.now() - untilMs > SHORTAGE_GAP_MS ? 0 : untilMs - sinceMs;
  }

  roomAbove({ storeId, version, highWaterMark }: Mark): number {
    const id = parseStoreId(storeId);
    return id === undefined ? 0 : Math.max(ceilingAt(id, version, this.#options.now()) - highWaterMark, 0);
  }

  /** Until the line lets the next run through, by this coordinator's clock. */
  waitMsAfter({ storeId, version, highWaterMark }: Mark): number {
    const id = parseStoreId(storeId);
    return id === undefined ? 0 : Math.max(whenCeilingReaches(id, version, highWaterMark + 1) - this.#options.now(), 0);
  }

  /** @throws CoordinatorError `operator_needed` for a mark so far above the line that no clock explains it. */
  mustBeNear(mark: Mark): void {
    if (this.#isFar(this.waitMsAfter(mark))) throw this.#operatorNeeded();
  }

  /** Takes note of each error of a step. Answers `operator_needed` in place of a refusal at the line that waiting does not end. */
  judged(error: unknown): unknown {
    if (!(error instanceof CoordinatorError) || error.code !== "line_reached") return error;
    if (this.#isFar(error.retryAfterMs ?? 0)) return this.#operatorNeeded();
    const nowMs = this.#options.now();
    const { sinceMs, untilMs } = this.#shortage ?? { sinceMs: nowMs, untilMs: nowMs };
    this.#shortage = { sinceMs: nowMs - untilMs > SHORTAGE_GAP_MS ? nowMs : sinceMs, untilMs: nowMs };
    return error;
  }

  /** Steps of ours leave the mark at most 2 eps ahead of the later clock, and each clock is believed within eps. */
  #isFar(waitMs: number): boolean {
    return waitMs > 5 * this.#options.bounds.epsMs + NEXT_RUN_MS_MAX;
  }

  #operatorNeeded(): CoordinatorError {
    return refused("OPERATOR", "line", this.#options.namespace);
  }
}

/**
 * The greatest run of a version that may be leased at an instant; may lie beyond the run space, or below its first run.
 * A version's line begins where the one before has passed the end of its run space: no earlier, so that a store which
 * forgot that it advanced can't advance onto a lower line.
 */
export function ceilingAt(id: StoreIdFields, version: number, timeMs: number): number {
  return startOf(id, version) + Math.floor(((timeMs - beginOf(id, version)) * id.rate) / 1000) + BURST_RUNS;
}

/** The first instant at which `lineAt` is at least `run`. */
export function whenCeilingReaches(id: StoreIdFields, version: number, run: number): number {
  return beginOf(id, version) + Math.ceil(((run - startOf(id, version) - BURST_RUNS) * 1000) / id.rate);
}

function startOf({ firstVersion, firstRun }: StoreIdFields, version: number): number {
  return version === firstVersion ? firstRun : 1;
}

function beginOf(id: StoreIdFields, version: number): number {
  if (version <= id.firstVersion) return id.initialisedAtMs;
  return whenCeilingReaches(id, version - 1, RUN_MAX);
}
