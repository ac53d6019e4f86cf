/**
 * How long to wait before the next try: full jitter, so that a thousand importers do not come back in the same instant.
 */
const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 10_000;
/** What is asked for beyond this is not heeded: an importer must notice soon that its coordinator is back. */
const LONGEST_RETRY_AFTER_MS = 60_000;

/**
 * A random delay below a bound that doubles with each failed attempt (1, 2, …), on top of what the coordinator asked for. The bound is no less
 * than what it asked for: all who were turned away in one instant were told the same, and would come back in one.
 */
export function retryDelayMs(attempt: number, retryAfterMs = 0): number {
  const askedMs = Math.min(retryAfterMs, LONGEST_RETRY_AFTER_MS);
  const bound = Math.min(LONGEST_DELAY_MS, Math.max(FIRST_DELAY_MS * 2 ** (attempt - 1), askedMs));
  return askedMs + Math.random() * bound;
}
