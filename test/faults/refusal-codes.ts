/**
 * How often requests failed, by code. And which codes a run of all faults must have met: every code of the HTTP API but those that no fault
 * of a store can cause.
 */
import { ERROR_RULES, type ErrorCode, RECOVERY_REASONS, type RecoveryReason } from "@callnumber/protocol/api";

/** How often something was met, by name. */
export class Counts extends Map<string, number> {
  of(name: string): number {
    return this.get(name) ?? 0;
  }

  add(name: string, count = 1): void {
    this.set(name, this.of(name) + count);
  }

  get sum(): number {
    return [...this.values()].reduce((sum, count) => sum + count, 0);
  }
}

/** Errors that no request for a lease gets, or that are no store's. The simulation can't meet them either. */
export const ELSEWHERE: Readonly<Partial<Record<ErrorCode, string>>> = {
  invalid_request: "a bad request over HTTP",
  not_found: "a bad request over HTTP",
  method_not_allowed: "a bad request over HTTP",
  body_too_large: "a bad request over HTTP",
  unsupported_media_type: "a bad request over HTTP",
  request_timed_out: "a bad request over HTTP",
  headers_too_large: "a bad request over HTTP",
  unauthorized: "a token",
  forbidden: "a token",
  rate_limited: "a limit of a coordinator",
  overloaded: "a limit of a coordinator",
  version_still_active: "an answer to operators only",
  run_not_leased: "a question about a run",
  holder_mismatch: "a report by another holder",
  too_many_streams: "people who watch",
  report_expired: "a report on a lease that was trimmed",
  lease_trimmed: "a question about a lease that was trimmed",
  shutting_down: "a coordinator that stops",
  store_version_unsupported: "no server so old is at hand: its text is tested with made-up versions",
  internal_error: "a bug",
};

/** Why a request can fail: every code, and in place of `store_recovering` every reason of it. */
export const CAUSES: readonly Cause[] = [
  ...(Object.keys(ERROR_RULES) as ErrorCode[]).filter((code) => code !== "store_recovering"),
  ...RECOVERY_REASONS,
];
export type Cause = ErrorCode | RecoveryReason;

/** The causes that should have been met, and were not. */
export function codesMissing(seen: ReadonlySet<string>): readonly string[] {
  return CAUSES.filter((cause) => !(cause in ELSEWHERE) && !seen.has(cause));
}
