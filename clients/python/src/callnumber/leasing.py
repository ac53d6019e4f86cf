"""
The request for a lease that all callers of a process share, in a thread of its own, and what it leaves: runs, reports and failures.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import secrets
import threading
import time
from collections import deque
from typing import Deque, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .attempts import as_client_error, delay_s, time_limit_s
from .codec import SEQUENCE_COUNT
from .demand import Demand
from .errors import RETRIED_CODES, STOPPING_CODES, ClientError
from .lease import Expected, Lease, checked_lease
from .settings import Settings
from .transport import Coordinator

logger = logging.getLogger("callnumber")


class Forks:
    """How many forks led to this process. The pid alone could be given again, and the count misses a fork outside of Python."""

    count = 0


def _forked() -> None:
    Forks.count += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


#: How far a run got. `run` is its ledger id.
Report = Dict[str, object]


class HeldRun(NamedTuple):
    """One run that a lease holds."""

    lease: Lease
    run: int


class Request:
    """A request for a lease, with its repeats. Another one takes its place only where it failed or has not started."""

    def __init__(self, needed: int) -> None:
        self.needed = needed
        #: The thread that is about to start it.
        self.starter: Optional[int] = threading.get_ident()


class Leasing:
    """The state of a buffer, and its requests. Methods that begin with `_` need the lock, except `_lease` and what it calls."""

    def __init__(self, settings: Settings, coordinator: Coordinator, parent: Optional[Leasing] = None) -> None:
        """`parent`: that of the process which this one was forked from. Its runs stay the parent's."""
        self.pid = os.getpid()
        self.fork_count = Forks.count
        #: Encoded and not used yet: callers take from its left, with or without the lock.
        self.numbers: Deque[str] = deque()
        self.store_id: Optional[str] = parent.store_id if parent else settings.expected_store_id
        # Entered itself, not through the condition: an exception of a signal handler may come between any two steps of Python
        # code, and that of a condition would then keep the lock.
        self._mutex = threading.RLock()
        self._changed = threading.Condition(self._mutex)
        self._settings = settings
        self._coordinator = coordinator
        self._demand = Demand(settings.spare_runs, settings.max_runs_per_lease)
        self._stock: Deque[HeldRun] = deque()
        self._held: Optional[HeldRun] = None
        self._blocks: Iterator[Tuple[HeldRun, int]] = iter(())
        #: Before this sequence of the run in use, all are encoded.
        self._encoded_through = 0
        self._refill_at = 0
        #: The one in flight. Any other that still has a thread ends without a lease.
        self._request: Optional[Request] = None
        #: Sends the request in flight, or sent the last one.
        self._requester: Optional[threading.Thread] = None
        #: Ledger id of the last run, and the proof of its lease. A child knows its parent's, and has no proof of its own.
        self._last_run: Optional[int] = parent._last_run if parent else None
        self._proof: Optional[str] = None
        #: How many runs each waiting thread misses.
        self._missing: Dict[int, int] = {}
        #: Of leases that are used up: the first goes with the next lease request.
        self._spent: Deque[Report] = deque()
        #: Of the last attempt to lease, and of the last one that no retry fixes: callers that waited then get it.
        self._failure: Optional[ClientError] = None
        self._final_failure: Optional[ClientError] = None
        #: Of the outage that goes on.
        self._has_warned = False
        #: Why no number is made any more. The first reason stays.
        self._ended_by: Optional[ClientError] = parent._ended_by if parent else None
        self._has_ended = threading.Event()

    def _require_usable(self) -> None:
        if self._ended_by is not None:
            raise self._ended_by.with_traceback(None)

    def _end(self, reason: ClientError) -> None:
        self._ended_by = reason
        self._held, self._blocks = None, iter(())
        self.numbers.clear()
        self._stock.clear()
        self._has_ended.set()
        self._changed.notify_all()

    def _refill(self, needed: int = 0) -> None:
        """
        Requests runs, unless a request is already in flight: the demand, or more that a call needs now. Where no thread can
        be started, callers that wait get an error.
        """
        # A signal handler may come while its own thread starts a request, which can then not go on before the handler ends.
        is_in_flight = self._request is not None and self._request.starter != threading.get_ident()
        if is_in_flight or self._ended_by is not None:
            return
        self._failure = None
        request = Request(needed)
        try:
            self._request = request
            requester = threading.Thread(target=self._lease, args=(request,), name="callnumber-lease", daemon=True)
            # It waits for the lock that this thread has.
            requester.start()
            request.starter = None
        except (RuntimeError, MemoryError) as error:
            self._give_up(request, as_client_error(error))
        except BaseException:
            # Of a signal handler. Another caller that waits requests again.
            if self._request is request:
                self._request = None
                self._changed.notify_all()
            raise
        else:
            if self._request is request:
                self._requester = requester

    def _give_up(self, request: Request, error: ClientError) -> None:
        """Callers that wait get the error, and the next call requests again."""
        if self._request is request:
            self._request = None
            self._failure = self._final_failure = error
            self._changed.notify_all()

    def _lease(self, request: Request) -> None:
        """In a thread of its own, without the lock: requests a lease until one comes, or no retry helps."""
        try:
            for attempt in itertools.count(1):
                try:
                    lease = self._lease_once(request, attempt)
                except Exception as error:
                    pause_s = self._failed(request, as_client_error(error), attempt)
                    if pause_s is None:
                        return
                    self._has_ended.wait(pause_s)
                else:
                    self._accept(request, lease)
                    # More came together while no lease did: the next request has room for one.
                    for report in self._taken_spent(1 if self._ended_by is None else 0):
                        self._send(report, self._settings.request_timeout_s)
                    return
        except BaseException as error:
            with self._mutex:
                self._give_up(request, as_client_error(error))

    def _lease_once(self, request: Request, attempt: int) -> Lease:
        settings = self._settings
        with self._mutex:
            self._require_usable()
            self._require_current(request)
            nonce = secrets.token_urlsafe(12)
            spare_run_count = len(self._stock)
            missing = max(request.needed, max(self._missing.values(), default=0))
            run_count = self._demand.run_count_to_request(missing, spare_run_count)
            report = self._spent[0] if self._spent else None
            expected = Expected(settings.namespace, nonce, run_count, self.store_id, self._last_run)
            body: Dict[str, object] = {
                "runCount": run_count,
                "nonce": nonce,
                "holder": settings.holder_of_process(),
                "lastRun": None if self._proof is None else self._last_run,
                "proof": self._proof,
                "sentAtMs": int(time.time() * 1000),
                "spareRunCount": spare_run_count,
            }
            if report is not None:
                body["report"] = report
        path = f"/v1/namespaces/{settings.namespace}/leases"
        response = self._coordinator.post(path, body, time_limit_s(settings, attempt))
        lease = checked_lease(response, expected)
        with self._mutex:
            if report is not None and report in self._spent:
                self._spent.remove(report)
        return lease

    def _require_current(self, request: Request) -> None:
        if self._request is not request:
            raise ClientError("internal_error", "another request for a lease took the place of this one")

    def _accept(self, request: Request, lease: Lease) -> None:
        with self._mutex:
            if self._request is request:
                self._request = None
            if self._ended_by is not None:
                if self._ended_by.code == "client_closed":
                    self._spent.append(report_on(HeldRun(lease, lease.first_run), None, "closed"))
                return
            self._stock.extend(HeldRun(lease, run) for run in range(lease.first_run, lease.last_run + 1))
            self.store_id, self._proof = lease.store_id, lease.proof
            self._last_run = lease.ledger_id(lease.last_run)
            self._failure = None
            had_warned, self._has_warned = self._has_warned, False
            self._demand.leased(lease.run_count)
            # Those that came for a call may do for the rest of the run in use, too.
            self._refill_at = max(self._refill_at, self._demand.refill_at(len(self._stock)))
            self._missing.clear()
            self._changed.notify_all()
            if len(self._stock) < self._settings.spare_runs:
                self._refill()
        if had_warned:
            logger.info("runs come again")

    def _failed(self, request: Request, error: ClientError, attempt: int) -> Optional[float]:
        """Returns how long to wait before the next attempt, in seconds; None for no other one."""
        with self._mutex:
            if self._request is not request:
                return None
            is_retried = self._ended_by is None and error.code in RETRIED_CODES
            is_stopped = self._ended_by is None and error.code in STOPPING_CODES
            if is_retried:
                self._failure = error
            else:
                if is_stopped:
                    self._spent.clear()
                    self._end(error)
                self._give_up(request, error)
        # Without the lock: a handler of the log may take long, and may take a number.
        if is_stopped:
            logger.error("this client generates no more numbers: %s", error)
        if not is_retried:
            return None
        logger.info("attempt %d to lease failed: %s", attempt, error)
        return delay_s(attempt, error.retry_after_s or 0.0)

    def _taken_spent(self, kept: int) -> List[Report]:
        """Takes the lock itself."""
        taken: List[Report] = []
        with self._mutex, contextlib.suppress(IndexError):
            while len(self._spent) > kept:
                taken.append(self._spent.popleft())
        return taken

    def _send(self, report: Report, timeout_s: float) -> None:
        """By a request of its own, without the lock."""
        body = dict(report)
        path = f"/v1/namespaces/{self._settings.namespace}/runs/{body.pop('run')}/report"
        try:
            self._coordinator.post(path, body, timeout_s)
        except Exception as error:
            with contextlib.suppress(Exception):
                logger.warning("a report did not arrive, which endangers no number: %s", error)


def report_on(held: HeldRun, last_sequence: Optional[int], state: str) -> Report:
    run = held.lease.ledger_id(held.run)
    return {"run": run, "nonce": held.lease.nonce, "lastSequence": last_sequence, "state": state}
