/**
 * How long to wait before the next try: full jitter, so that a thousand importers do not come back in the same instant.
 */
const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 10_000;
/** Over so long those come back who were told the same pause in the same instant. */
const SPREAD_MS = 1_000;
/** What is asked for beyond this is not heeded: an importer must notice soon that its coordinator is back. */
const LONGEST_RETRY_AFTER_MS = 60_000;

/**
 * A random delay, in whole milliseconds, below a bound that doubles with each failed attempt (1, 2, …), on top of what the coordinator asked for. Where it asked, the
 * bound is as long as that, up to a second: a crowd that was turned away does not come back as one, and a single importer hardly waits longer.
 */
export function retryDelayMs(attempt: number, retryAfterMs = 0): number {
  const askedMs = Math.min(retryAfterMs, LONGEST_RETRY_AFTER_MS);
  const bound = Math.min(LONGEST_DELAY_MS, Math.max(FIRST_DELAY_MS * 2 ** (attempt - 1), Math.min(askedMs, SPREAD_MS)));
  return Math.ceil(askedMs + Math.random() * bound);
}
