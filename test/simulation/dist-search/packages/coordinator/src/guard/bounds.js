/** The bounds that the guard stands on. Those that belong to the schema are constants; the others may be set by tests. */
/** How far two clocks may lie apart before neither is believed, ms. */
export const EPS_MS = 2_000;
/** After how long a silence it can't be known any more what happened to the store, ms. */
export const GAP_MS = 300_000;
/** How often a coordinator touches the record, so that no silence arises while it runs, ms. */
export const TOUCH_EVERY_MS = 5_000;
/** After so long a silence a clock that leapt can't be told from a store that slept: an operator looks, ms. */
export const SILENCE_MAX_MS = 30 * 24 * 3_600_000;
/** Runs that may be leased at once, ahead of the line's slope: a billion call numbers. */
export const BURST_RUNS = 65_536;
/** A lease takes at most this part of the room that is left under the line, so that holders share what is scarce. */
export const ROOM_SHARE = 64;
/** No clock that shows an earlier time than this release is right. */
export const RELEASED_AT_MS = Date.UTC(2026, 10, 1);
export const DEFAULT_BOUNDS = { epsMs: EPS_MS, gapMs: GAP_MS, touchEveryMs: TOUCH_EVERY_MS };
//# sourceMappingURL=bounds.js.map