"""The one error class of the client, and the closed list of its codes. docs/reference/errors.md explains each code."""

from __future__ import annotations

from typing import Optional

#: After these, the client repeats a lease request by itself.
RETRIED_CODES = frozenset(
    """
    coordinator_unreachable request_timed_out rate_limited overloaded run_ceiling_reached store_recovering quorum_missing
    lease_discarded clock_skew clock_moved_backward store_is_replica unexpected_replicas store_unavailable too_many_streams
    shutting_down
    """.split()
)
#: After these, the runs that the client holds must not be used either: another holder may get the same ones.
STOPPING_CODES = frozenset(
    "store_mismatch run_not_increasing run_above_high_water_mark store_id_mismatch store_forked".split()
)
#: Every code that an error can have.
CODES = RETRIED_CODES | STOPPING_CODES | frozenset(
    """
    invalid_request not_found method_not_allowed body_too_large unsupported_media_type headers_too_large unauthorized
    forbidden namespace_not_found namespace_exists run_not_leased lease_trimmed holder_mismatch report_expired
    run_space_exhausted version_still_active namespace_moved namespace_lost manual_recovery_required
    store_epoch_unreadable store_eviction_enabled store_version_unsupported store_copied coordinator_still_running
    checkpoint_unavailable store_corrupt store_schema_unsupported store_locked store_not_found internal_error
    client_closed wait_timeout certificate_rejected invalid_response
    """.split()
)


class ClientError(Exception):
    """
    No call number can be made, for a reason outside the importer. `code` is stable and one of `CODES`; the message is for
    people. `reason` is set for `store_recovering`. `retry_after_s` is how long to wait at least, where the coordinator
    requests it. What the failed call may have cost (a run, some sequences) is discarded, never reused.
    """

    def __init__(
        self, code: str, message: str, *, reason: Optional[str] = None, retry_after_s: Optional[float] = None
    ) -> None:
        # Both, so that the error can be sent to another process.
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.reason = reason
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return self.message
