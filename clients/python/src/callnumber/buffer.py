"""
Leased runs and the numbers of the run in use, of one process. All callers share one request in flight, in a thread of its own.

Invariant: a run, a block of its sequences and a number are each taken by one operation that nothing can interrupt: `popleft`, or
the step of an iterator. So no thread, signal handler or exception in between makes a number leave twice.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from typing import Dict, List, NamedTuple, Optional, Tuple

from .codec import BLOCK_COUNT, BLOCK_SIZE, SEQUENCE_COUNT, SEQUENCE_MAX, numbers_of_block
from .errors import ClientError
from .leasing import Leasing, Report, logger, report_on
from .settings import Settings
from .transport import Coordinator

#: After so long without a run a caller logs a warning, once in an outage.
_WARNING_AFTER_S = 2.0
#: How long a close waits for the response to a lease request in flight: its runs would stay open in the ledger.
_CLOSE_GRACE_S = 1.0


class Wait(NamedTuple):
    """Of a caller for a run."""

    began: float
    #: The last one before the wait.
    final_failure: Optional[ClientError]


class LeaseBuffer(Leasing):
    """What callers ask for. Methods that begin with `_` need the lock."""

    def __init__(self, settings: Settings, coordinator: Coordinator, parent: Optional[LeaseBuffer] = None) -> None:
        super().__init__(settings, coordinator, parent)
        #: Those that take its place after a fork, by pid and count of forks.
        self.of_children: Dict[Tuple[int, int], LeaseBuffer] = {}

    def encode_more(self, wanted: int) -> None:
        """
        Returns once there were `numbers`: another caller may have taken them. Waits for a run if none is buffered. `wanted`:
        how many numbers the caller needs. Raises ClientError.
        """
        wait = Wait(time.monotonic(), self._final_failure)
        while True:
            with self._mutex:
                self._require_usable()
                if self.numbers or self._encode_block():
                    return
                self._finish_run()
                warning = self._wait_for_run(wait, math.ceil(wanted / SEQUENCE_COUNT))
                if warning is None:
                    self._begin_run()
            # Here, a handler of the log may take long, and may take a number.
            if warning is not None:
                logger.warning("%s", warning)

    def request_for(self, count: int) -> None:
        """Requests the runs that `count` numbers miss, in the background: as many as are needed, not one after the other."""
        with self._mutex:
            self._require_usable()
            held_count = 0
            if self._held is not None:
                held_count = SEQUENCE_COUNT - self._encoded_through + len(self.numbers)
            if held_count == 0:
                self._finish_run()
                if not self._stock:
                    return  # The call waits and requests them itself. It would not get an error from before its wait.
            missing = math.ceil((count - held_count) / SEQUENCE_COUNT) - len(self._stock)
            if missing > 0:
                self._refill(missing)

    def close(self) -> None:
        """Gives up all runs, reports how far they got, and returns when each report has arrived or failed."""
        reports: List[Report] = []
        with self._mutex:
            if self._ended_by is None:
                if self._held is not None:
                    used = self._encoded_through - self._discarded_count()
                    reports.append(report_on(self._held, used - 1 if used > 0 else None, "closed"))
                for held in self._stock:
                    if held.run == held.lease.first_run:
                        reports.append(report_on(held, None, "closed"))
                message = "this client is closed. Create a new client for more numbers"
                self._end(ClientError("client_closed", message))
        requester = self._requester
        # A token function may close the client.
        if requester is not None and requester is not threading.current_thread():
            requester.join(_CLOSE_GRACE_S)
        # From here on no lease request takes one along.
        reports += self._taken_spent(0)
        end = time.monotonic() + self._settings.request_timeout_s
        for report in reports:
            self._send(report, max(end - time.monotonic(), 0.001))

    def _discarded_count(self) -> int:
        """Discards the encoded numbers one by one: each is either counted here or taken by a caller that does not wait."""
        count = 0
        try:
            while True:
                self.numbers.pop()
                count += 1
        except IndexError:
            return count

    def _encode_block(self) -> bool:
        """
        The next one of the run in use; False for none. Where a signal handler encoded a later one in between, this one is
        discarded: what is encoded stays in order, as a report needs it.
        """
        while True:
            # Not a loop over it: the handler may have begun another run.
            held, block = next(self._blocks, (None, 0))
            if held is None:
                return False
            through = (block + 1) * BLOCK_SIZE
            encoded = numbers_of_block(held.lease.version, held.run, block)
            if self._held is not held or through <= self._encoded_through:
                continue
            self._encoded_through = through
            self.numbers.extend(encoded)
            if self._ended_by is not None:
                self.numbers.clear()
                self._require_usable()
            if through > self._refill_at:
                self._refill_at = SEQUENCE_COUNT
                self._refill()
            return True

    def _begin_run(self) -> None:
        try:
            held = self._stock.popleft()
        except IndexError:
            return  # A signal handler took it.
        self._held, self._blocks = held, zip(itertools.repeat(held), range(BLOCK_COUNT))
        self._encoded_through = 0
        self._demand.run_started()
        self._refill_at = self._demand.refill_at(len(self._stock))

    def _finish_run(self) -> None:
        """With the last run of a lease, the lease is reported: in the next lease request, if there is one."""
        held, self._held = self._held, None
        if held is not None and held.run == held.lease.last_run:
            self._spent.append(report_on(held, SEQUENCE_MAX, "exhausted"))

    def _wait_for_run(self, wait: Wait, missing: int) -> Optional[str]:
        """
        Returns None once there was a run, or a warning to log before the wait goes on. Raises ClientError: the coordinator's
        error when no retry fixes it, or after `wait_timeout_s` the last one.
        """
        while not self._stock:
            waited_s = time.monotonic() - wait.began
            left_s = self._settings.wait_timeout_s - waited_s
            if left_s <= 0:
                raise self._wait_error()
            if not self._has_warned and waited_s >= _WARNING_AFTER_S:
                self._has_warned = True
                return f"no run came within 2 s: {self._last_reason()}; the client keeps trying"
            self._demand.starved()
            thread = threading.get_ident()
            self._missing[thread] = missing
            try:
                self._refill()
                if self._request is not None:
                    self._changed.wait(min(left_s, left_s if self._has_warned else max(_WARNING_AFTER_S - waited_s, 0.001)))
            finally:
                self._missing.pop(thread, None)
            self._require_usable()
            if self._final_failure is not None and self._final_failure is not wait.final_failure:
                raise self._final_failure.with_traceback(None)
        return None

    def _last_reason(self) -> str:
        return "the coordinator has not answered yet" if self._failure is None else str(self._failure)

    def _wait_error(self) -> ClientError:
        message = f"no run came within {self._settings.wait_timeout_s:g} s: {self._last_reason()}"
        if self._failure is None:
            return ClientError("wait_timeout", message)
        return ClientError(self._failure.code, message, retry_after_s=self._failure.retry_after_s)
