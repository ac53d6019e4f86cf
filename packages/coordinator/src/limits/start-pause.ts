/**
 * How long a holder that starts again and again has to wait before its next start. Pure arithmetic.
 *
 * What is held against a holder is a number of starts of which nothing came. Each such start adds one; time that passes beyond the pause
 * takes them away again, at the pace at which starts are free. So whoever starts less often than that is never made to wait, and
 * whoever starts as soon as it may waits longer and longer.
 */

/** Starts of which nothing came that are free within `FREE_WINDOW_MS`: a pool of importers on one host begins so. */
export const FREE_STARTS = 64;
export const FREE_WINDOW_MS = 1_800_000;
const FIRST_PAUSE_MS = 1_000;
export const PAUSE_MAX_MS = 300_000;
/** The pause doubles after so many more. */
const STARTS_PER_DOUBLING = 8;
/** Beyond this the pause grows no more, and neither does what has to be forgotten again. */
const HELD_MAX = FREE_STARTS + STARTS_PER_DOUBLING * Math.ceil(Math.log2(PAUSE_MAX_MS / FIRST_PAUSE_MS));

/** Between a start and the next, with so many held against the holder. */
export function pauseMsFor(held: number): number {
  if (held < FREE_STARTS) return 0;
  return Math.min(FIRST_PAUSE_MS * 2 ** Math.floor((held - FREE_STARTS) / STARTS_PER_DOUBLING), PAUSE_MAX_MS);
}

/** What is still held against it after so long without a start; the pause itself takes nothing away. */
export function heldAfter(held: number, quietMs: number, pauseMs: number): number {
  return Math.max(held - (Math.max(quietMs - pauseMs, 0) * FREE_STARTS) / FREE_WINDOW_MS, 0);
}

export function heldWithOneMore(held: number): number {
  return Math.min(held + 1, HELD_MAX);
}

/** A start of which something came: what made the others fail is over, or was not the program. */
export function heldAfterGoodStart(held: number): number {
  return Math.min(Math.max(held - 1, 0), FREE_STARTS) / 2;
}
