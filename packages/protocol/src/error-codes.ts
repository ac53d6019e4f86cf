/** The closed list of error codes of the HTTP API, and what each means for a client. Each has a heading in docs/errors.md. */

/** Whether a client may send the same request again: `later`, after a pause; `never`, not before something has changed. */
export type RetryRule = "never" | "later";

interface ErrorRule {
  readonly httpStatus: number;
  readonly retry: RetryRule;
}

export const ERROR_RULES = {
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
  // The store may have rolled back: the coordinator recovers automatically, as soon as the store allows it.
  store_epoch_changed: { httpStatus: 503, retry: "later" },
  store_claimed: { httpStatus: 503, retry: "later" },
  store_silent: { httpStatus: 503, retry: "later" },
  store_went_back: { httpStatus: 503, retry: "later" },
  store_generation_stale: { httpStatus: 503, retry: "later" },
  claim_raced: { httpStatus: 503, retry: "later" },
  quorum_missing: { httpStatus: 503, retry: "later" },
  lease_burnt: { httpStatus: 503, retry: "later" },
  // Leasing goes on as soon as an operator has fixed it, without a command.
  clocks_disagree: { httpStatus: 503, retry: "later" },
  clock_went_back: { httpStatus: 503, retry: "later" },
  store_is_replica: { httpStatus: 503, retry: "later" },
  store_has_more_nodes: { httpStatus: 503, retry: "later" },
  // Nothing is leased until an operator has run a command.
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
} as const satisfies Readonly<Record<string, ErrorRule>>;

export type ErrorCode = keyof typeof ERROR_RULES;

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(ERROR_RULES, value);
}

/** The errors of a coordinator, and those that the client finds itself. */
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
