"""
How many runs a client leases ahead, and when. The demand starts at one run, doubles when callers had to wait, to half of what
was used lately at the most, and halves when a lease lasted long. So a small importer leaves little unused, and a large one
seldom sends a request.
"""

from __future__ import annotations

import math
import time
from typing import Optional

from .codec import SEQUENCE_COUNT

#: A lease that lasted longer than this was larger than needed.
_CALM_LEASE_S = 10.0
#: The greatest demand, in largest leases: then the next one is requested while two are buffered.
_DEMAND_LEASES_MAX = 4
#: After a shorter wait an earlier request would not help.
_SLOW_RESPONSE_S = 0.005


class Demand:
    """Not safe for threads: its owner has the lock."""

    def __init__(self, spare_runs: int, max_runs_per_lease: int) -> None:
        self._spare_runs = spare_runs
        self._max_runs_per_lease = max_runs_per_lease
        self._run_count = 1
        self._used_lately = 0
        self._last_lease_run_count = 0
        self._last_lease_at = 0.0
        #: When a caller found no run; None when one has arrived since.
        self._starved_at: Optional[float] = None

    def run_started(self) -> None:
        self._used_lately += 1

    def starved(self) -> None:
        """A caller found no run."""
        if self._starved_at is not None:
            return
        self._starved_at = time.monotonic()
        if self._last_lease_run_count > 0 and not self._has_lease_lasted():
            self._grow(self._max_runs_per_lease)

    def leased(self, run_count: int) -> None:
        self._last_lease_run_count = run_count
        self._last_lease_at = now = time.monotonic()
        wait_s = 0.0 if self._starved_at is None else now - self._starved_at
        if wait_s > _SLOW_RESPONSE_S and self._run_count >= self._max_runs_per_lease:
            self._grow(self._max_runs_per_lease * _DEMAND_LEASES_MAX)
        self._starved_at = None

    def refill_at(self, buffered_run_count: int) -> int:
        """From this sequence of the run in use on it is time to refill; `SEQUENCE_COUNT` for never."""
        if buffered_run_count < self._spare_runs:
            return 0
        # None while the coordinator leases less than requested: scarce runs are not hoarded.
        is_cut = self._last_lease_run_count < self._max_runs_per_lease
        beyond_largest = 0 if is_cut else max(self._run_count - self._max_runs_per_lease, 0)
        # Half of a lease, but of a single run a quarter: an importer of fewer than 12,000 numbers needs no second one.
        lead = (min(self._run_count, self._last_lease_run_count) - 0.5 + beyond_largest) / 2
        sequence = math.floor((1 - lead + buffered_run_count) * SEQUENCE_COUNT) + 1
        return min(max(sequence, 0), SEQUENCE_COUNT)

    def run_count_to_request(self, needed_run_count: int, buffered_run_count: int) -> int:
        """`needed_run_count`: how many runs callers miss now, in addition to the buffered ones."""
        if self._has_lease_lasted():
            self._used_lately = 0
            if self._starved_at is None:
                self._run_count = max(min(self._run_count, self._max_runs_per_lease) // 2, 1)
        # Callers that miss runs will use the buffered ones, too.
        missing = needed_run_count or -buffered_run_count
        return min(max(self._run_count, missing + self._spare_runs), self._max_runs_per_lease)

    def _has_lease_lasted(self) -> bool:
        return time.monotonic() - self._last_lease_at > _CALM_LEASE_S

    def _grow(self, most: int) -> None:
        grown = min(self._run_count * 2, most, math.ceil(self._used_lately / 2))
        self._run_count = max(self._run_count, grown)
