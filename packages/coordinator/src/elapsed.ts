/** To the microsecond: more would be noise in the log. `startedMs`: of `performance.now()`. */
export function msSince(startedMs: number): number {
  return Math.round((performance.now() - startedMs) * 1_000) / 1_000;
}
