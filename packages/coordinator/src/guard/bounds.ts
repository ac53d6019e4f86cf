/** The bounds of the guard. Those that belong to the schema are constants; tests may set the others. */

/** How far two clocks may differ before neither is believed, ms. */
export const EPS_MS = 2_000;
/** After a longer heartbeat gap nothing is known about the store any more, ms. */
export const GAP_MS = 300_000;
/** A coordinator without a checkpoint believes a record only if it is younger: then another coordinator has just verified it, ms. */
export const ATTENDED_MS = 30_000;
/** How often a coordinator writes a heartbeat into the record, ms. */
export const HEARTBEAT_EVERY_MS = 5_000;

/** After a longer heartbeat gap, a clock that leapt looks like a store that was stopped: an operator decides, ms. */
export const SILENCE_MAX_MS = 30 * 24 * 3_600_000;
/** Runs that may be leased at once, ahead of the slope of the run ceiling: a billion call numbers. */
export const BURST_RUNS = 65_536;
/** A lease takes at most this part of the headroom below the ceiling, so that holders share what is scarce. */
export const ROOM_SHARE = 64;
/** A clock that shows an earlier time than this release is wrong. */
export const RELEASED_AT_MS = Date.UTC(2026, 10, 1);

export interface Bounds {
  /** Default 2,000. */
  readonly epsMs: number;
  /** Default 300,000; many times `heartbeatEveryMs`. */
  readonly gapMs: number;
  /** Default 30,000; several times `heartbeatEveryMs`. */
  readonly attendedMs: number;
  /** Default 5,000. */
  readonly heartbeatEveryMs: number;
}

export const DEFAULT_BOUNDS: Bounds = {
  epsMs: EPS_MS,
  gapMs: GAP_MS,
  attendedMs: ATTENDED_MS,
  heartbeatEveryMs: HEARTBEAT_EVERY_MS,
};

/**
 * Returns how many other nodes must acknowledge a step before it counts: then every majority that could promote a node includes one that has
 * the step. A single node has no others.
 */
export function quorumOf(nodeCount: number): number {
  return Math.floor(nodeCount / 2);
}
