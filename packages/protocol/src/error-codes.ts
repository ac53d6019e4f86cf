/** The closed list of error codes of the HTTP API, and what each means for a client. Each has a heading in docs/reference/errors.md. */

/** Whether a client may send the same request again: `later`, after a pause; `never`, not before something has changed. */
type RetryRule = "never" | "later";

interface ErrorRule {
  readonly httpStatus: number;
  readonly retry: RetryRule;
}

/** The HTTP status of each error code, and whether the same request may be sent again. */
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
  namespace_not_found: { httpStatus: 404, retry: "never" },
  namespace_exists: { httpStatus: 409, retry: "never" },
  run_not_leased: { httpStatus: 404, retry: "never" },
  lease_trimmed: { httpStatus: 410, retry: "never" },
  store_mismatch: { httpStatus: 409, retry: "never" },
  holder_mismatch: { httpStatus: 409, retry: "never" },
  report_expired: { httpStatus: 409, retry: "never" },
  run_above_high_water_mark: { httpStatus: 400, retry: "never" },
  run_space_exhausted: { httpStatus: 409, retry: "never" },
  version_still_active: { httpStatus: 409, retry: "never" },
  run_ceiling_reached: { httpStatus: 503, retry: "later" },
  // The store may have rolled back: the coordinator recovers automatically, as soon as the store allows it.
  store_recovering: { httpStatus: 503, retry: "later" },
  quorum_missing: { httpStatus: 503, retry: "later" },
  lease_discarded: { httpStatus: 503, retry: "later" },
  // Leasing goes on as soon as an operator has fixed it, without a command.
  clock_skew: { httpStatus: 503, retry: "later" },
  clock_moved_backward: { httpStatus: 503, retry: "later" },
  store_is_replica: { httpStatus: 503, retry: "later" },
  unexpected_replicas: { httpStatus: 503, retry: "later" },
  // Nothing is leased until an operator has run a command.
  namespace_moved: { httpStatus: 503, retry: "never" },
  store_forked: { httpStatus: 503, retry: "never" },
  store_id_mismatch: { httpStatus: 503, retry: "never" },
  namespace_lost: { httpStatus: 503, retry: "never" },
  manual_recovery_required: { httpStatus: 503, retry: "never" },
  store_epoch_unreadable: { httpStatus: 503, retry: "never" },
  store_eviction_enabled: { httpStatus: 503, retry: "never" },
  store_version_unsupported: { httpStatus: 503, retry: "never" },
  store_copied: { httpStatus: 503, retry: "never" },
  coordinator_still_running: { httpStatus: 409, retry: "never" },
  checkpoint_unavailable: { httpStatus: 503, retry: "never" },
  store_corrupt: { httpStatus: 503, retry: "never" },
  store_schema_unsupported: { httpStatus: 503, retry: "never" },
  store_locked: { httpStatus: 503, retry: "never" },
  store_not_found: { httpStatus: 503, retry: "never" },
  store_unavailable: { httpStatus: 503, retry: "later" },
  too_many_streams: { httpStatus: 503, retry: "later" },
  shutting_down: { httpStatus: 503, retry: "later" },
  internal_error: { httpStatus: 500, retry: "never" },
} as const satisfies Readonly<Record<string, ErrorRule>>;

export type ErrorCode = keyof typeof ERROR_RULES;

/**
 * Why a namespace is recovered: the `reason` of `store_recovering`. `conflict`: another coordinator recovers it, or the store changed
 * during the recovery.
 */
export const RECOVERY_REASONS = [
  "epoch_changed",
  "claimed",
  "heartbeat_expired",
  "rolled_back",
  "generation_stale",
  "conflict",
] as const;
export type RecoveryReason = (typeof RECOVERY_REASONS)[number];

/** Whether a value is an error code of the HTTP API. */
export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(ERROR_RULES, value);
}

/** The errors of a coordinator, and those that the client finds itself. */
export type ClientErrorCode =
  | ErrorCode
  | "no_run_available"
  | "sequence_exhausted"
  | "client_closed"
  | "wait_timeout"
  | "coordinator_unreachable"
  | "certificate_rejected"
  | "invalid_response"
  | "run_not_increasing"
  | "process_cloned";

/**
 * Errors after which a client must not use its buffered runs any more either: the store is not the one that leased them, or has lost them, or
 * there are two of it. Another holder may get the same runs.
 */
export const STOPPING_CODES: ReadonlySet<ClientErrorCode> = new Set([
  "store_mismatch",
  "run_not_increasing",
  "run_above_high_water_mark",
  "store_id_mismatch",
  "store_forked",
]);
