/**
 * The closed list of errors that cross the wire, and what each means for a caller. Each has a heading in docs/errors.md.
 * Every table is complete by its type: a new code does not compile until each has a line for it.
 */

export type ErrorCode =
  | "invalid_request"
  | "not_found"
  | "method_not_allowed"
  | "body_too_large"
  | "unsupported_media_type"
  | "request_timed_out"
  | "headers_too_large"
  | "unauthorized"
  | "forbidden"
  | "rate_limited"
  | "overloaded"
  | "namespace_not_initialised"
  | "namespace_already_initialised"
  | "run_not_leased"
  | "lease_trimmed"
  | "not_the_holder"
  | "report_too_late"
  | "run_beyond_mark"
  | "run_space_exhausted"
  | "version_not_ended"
  | "line_reached"
  | "store_epoch_changed"
  | "store_claimed"
  | "store_silent"
  | "store_went_back"
  | "store_generation_stale"
  | "claim_raced"
  | "quorum_missing"
  | "lease_burnt"
  | "clocks_disagree"
  | "clock_went_back"
  | "store_moved"
  | "store_is_replica"
  | "store_has_more_nodes"
  | "store_forked"
  | "store_replaced"
  | "store_emptied"
  | "operator_needed"
  | "store_epoch_unreadable"
  | "store_evicts"
  | "store_too_old"
  | "store_copied"
  | "witness_unusable"
  | "coordinator_still_leases"
  | "store_corrupt"
  | "store_unknown_schema"
  | "store_locked"
  | "store_missing"
  | "store_unavailable"
  | "too_many_streams"
  | "shutting_down"
  | "internal_error";

/** What a caller may do with a refused request: `later`, the same again after a pause; `never`, first something must change. */
export type RetryRule = "never" | "later";

interface ErrorRule {
  readonly httpStatus: number;
  readonly retry: RetryRule;
}

export const ERROR_RULES: Readonly<Record<ErrorCode, ErrorRule>> = {
  invalid_request: { httpStatus: 400, retry: "never" },
  not_found: { httpStatus: 404, retry: "never" },
  method_not_allowed: { httpStatus: 405, retry: "never" },
  body_too_large: { httpStatus: 413, retry: "never" },
  unsupported_media_type: { httpStatus: 415, retry: "never" },
  request_timed_out: { httpStatus: 408, retry: "later" },
  headers_too_large: { httpStatus: 431, retry: "never" },
  unauthorized: { httpStatus: 401, retry: "never" },
  forbidden: { httpStatus: 403, retry: "never" },
  rate_limited: { httpStatus: 429, retry: "later" },
  overloaded: { httpStatus: 503, retry: "later" },
  namespace_not_initialised: { httpStatus: 404, retry: "never" },
  namespace_already_initialised: { httpStatus: 409, retry: "never" },
  run_not_leased: { httpStatus: 404, retry: "never" },
  lease_trimmed: { httpStatus: 410, retry: "never" },
  not_the_holder: { httpStatus: 409, retry: "never" },
  report_too_late: { httpStatus: 409, retry: "never" },
  run_beyond_mark: { httpStatus: 400, retry: "never" },
  run_space_exhausted: { httpStatus: 409, retry: "never" },
  version_not_ended: { httpStatus: 409, retry: "never" },
  line_reached: { httpStatus: 503, retry: "later" },
  // A doubt: the coordinator settles it by itself, as soon as the store lets it.
  store_epoch_changed: { httpStatus: 503, retry: "later" },
  store_claimed: { httpStatus: 503, retry: "later" },
  store_silent: { httpStatus: 503, retry: "later" },
  store_went_back: { httpStatus: 503, retry: "later" },
  store_generation_stale: { httpStatus: 503, retry: "later" },
  claim_raced: { httpStatus: 503, retry: "later" },
  quorum_missing: { httpStatus: 503, retry: "later" },
  lease_burnt: { httpStatus: 503, retry: "later" },
  // Wrong now, and right again once somebody has mended it; nothing has to be typed.
  clocks_disagree: { httpStatus: 503, retry: "later" },
  clock_went_back: { httpStatus: 503, retry: "later" },
  store_is_replica: { httpStatus: 503, retry: "later" },
  store_has_more_nodes: { httpStatus: 503, retry: "later" },
  // A fence: nothing is leased until an operator has looked and typed.
  store_moved: { httpStatus: 503, retry: "never" },
  store_forked: { httpStatus: 503, retry: "never" },
  store_replaced: { httpStatus: 503, retry: "never" },
  store_emptied: { httpStatus: 503, retry: "never" },
  operator_needed: { httpStatus: 503, retry: "never" },
  store_epoch_unreadable: { httpStatus: 503, retry: "never" },
  store_evicts: { httpStatus: 503, retry: "never" },
  store_too_old: { httpStatus: 503, retry: "never" },
  store_copied: { httpStatus: 503, retry: "never" },
  coordinator_still_leases: { httpStatus: 409, retry: "never" },
  witness_unusable: { httpStatus: 503, retry: "never" },
  store_corrupt: { httpStatus: 503, retry: "never" },
  store_unknown_schema: { httpStatus: 503, retry: "never" },
  store_locked: { httpStatus: 503, retry: "never" },
  store_missing: { httpStatus: 503, retry: "never" },
  store_unavailable: { httpStatus: 503, retry: "later" },
  too_many_streams: { httpStatus: 503, retry: "later" },
  shutting_down: { httpStatus: 503, retry: "later" },
  internal_error: { httpStatus: 500, retry: "never" },
};

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(ERROR_RULES, value);
}

/** Errors that the client finds by itself, beside those that a coordinator answers. */
export type ClientErrorCode =
  | ErrorCode
  | "no_run_ready"
  | "sequence_exhausted"
  | "client_closed"
  | "wait_timed_out"
  | "coordinator_unreachable"
  | "certificate_rejected"
  | "answer_not_understood"
  | "other_store"
  | "run_not_rising"
  | "copied_process";
