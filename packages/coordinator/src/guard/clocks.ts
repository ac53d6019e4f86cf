/**
 * The clocks of store and coordinator, which every step compares: with each other, with the time of the release, and with the time of the last
 * write; and how far they are believed. Pure. The clock of a holder is checked in coordinator.ts.
 * Guarantees: G6 (docs/guarantees.md).
 */
import type { NamespaceState } from "./record.js";
import { type Refusal, refusal } from "./refusals.js";

export const EPS_MS = 2_000;
export const GAP_MS = 300_000;
/** How often a coordinator writes a heartbeat into the record, ms. */
export const HEARTBEAT_EVERY_MS = 5_000;

/** After a longer heartbeat gap, a clock that leapt looks like a store that was stopped: an operator decides, ms. */
export const SILENCE_MAX_MS = 30 * 24 * 3_600_000;
/** A clock that shows an earlier time than this release is wrong. */
export const RELEASED_AT_MS = Date.UTC(2026, 10, 1);

/** Tests may set others than the default. */
export interface Bounds {
  /** How far two clocks may differ before neither is believed. */
  readonly epsMs: number;
  /** After a longer heartbeat gap nothing is known about the store any more. Many times `heartbeatEveryMs`. */
  readonly gapMs: number;
  /** A coordinator without a checkpoint believes a younger record only: another coordinator has just verified it. Several times `heartbeatEveryMs`. */
  readonly attendedMs: number;
  /** How often a heartbeat is written into the record. */
  readonly heartbeatEveryMs: number;
}

export const DEFAULT_BOUNDS: Bounds = {
  epsMs: EPS_MS,
  gapMs: GAP_MS,
  attendedMs: 30_000,
  heartbeatEveryMs: HEARTBEAT_EVERY_MS,
};

/** The part of a step's context that has the clocks. */
interface Clocks {
  /** The store's clock. */
  readonly server: { readonly timeMs: number };
  /** The coordinator's clock. */
  readonly nowMs: number;
  readonly bounds: Pick<Bounds, "epsMs">;
}

/** Two clocks that differ by up to eps: a lease counts with the earlier one, a recovery with the later one. */
export function clocksOf({ server, nowMs }: Clocks): {
  readonly earliestMs: number;
  readonly latestMs: number;
} {
  return { earliestMs: Math.min(server.timeMs, nowMs), latestMs: Math.max(server.timeMs, nowMs) };
}

/** Refuses clocks that differ by more than eps, and clocks that are both before the release. */
export function checkClocks(context: Clocks): Refusal | undefined {
  const { server, nowMs, bounds } = context;
  if (Math.abs(server.timeMs - nowMs) > bounds.epsMs) return refusal("CLOCK", server.timeMs - nowMs);
  if (clocksOf(context).latestMs < RELEASED_AT_MS) return refusal("CLOCK", 0);
  return undefined;
}

/**
 * Refuses a clock of `move` that is ahead of the store's, or before the release: the id of the new store is made by it, and a store from the future
 * leases nothing. A store's clock that is ahead, and a last write in the future, are what a namespace is moved away from.
 */
export function checkClockOfMove({ server, nowMs, bounds }: Clocks): Refusal | undefined {
  if (nowMs - server.timeMs > bounds.epsMs) return refusal("CLOCK", server.timeMs - nowMs);
  return nowMs < RELEASED_AT_MS ? refusal("CLOCK", 0) : undefined;
}

/** Refuses clocks that are behind the last write, and a silence of 30 days that no operator has accepted. */
export function checkHeartbeat(
  context: Clocks,
  record: Pick<NamespaceState, "changedAtMs">,
  isAccepted: boolean,
): Refusal | undefined {
  const { latestMs } = clocksOf(context);
  const backMs = record.changedAtMs - context.bounds.epsMs - latestMs;
  if (backMs > 0) return refusal("CLOCKBACK", backMs);
  const gapMs = latestMs - record.changedAtMs;
  return gapMs > SILENCE_MAX_MS && !isAccepted ? refusal("OPERATOR", "silence") : undefined;
}
