/**
 * Events that one caller can cause as often as it asks, with the weakest token or with none. Wherever events are written or kept these have a
 * bounded part, and what comes beyond it is told in one sum: no flood of them hides what the guard did, or takes the room of leases. Pure.
 */

/** Each is an alarm to somebody, so the first of them are told at once, one by one. A fault of our own, too: who knows one can cause it again. */
export const CALLER_EVENTS: ReadonlySet<string> = new Set([
  "refusal",
  "clocks_disagree",
  "run_beyond_mark",
  "burnt",
  "internal_error",
  "sign_in",
  "sign_out",
]);

const SUM_OF_OTHERS = "repeated";
const SUMS: ReadonlySet<string> = new Set(["leases", "refusals", SUM_OF_OTHERS]);

/** What those of one second that are not told one by one are summed up in. */
export function sumNameOf(event: string): string {
  if (event === "lease") return "leases";
  return event === "refusal" ? "refusals" : SUM_OF_OTHERS;
}

export function isSum(event: string): boolean {
  return SUMS.has(event);
}
