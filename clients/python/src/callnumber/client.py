"""
Generates call numbers: the sequences of a leased run, one after the other. Nothing is persisted: a new process takes a new run,
and so does a forked one.
"""

from __future__ import annotations

from os import getpid
from typing import List, Mapping, NoReturn, Optional

from .buffer import LeaseBuffer
from .codec import SEQUENCE_COUNT, require_within
from .leasing import Forks
from .settings import LEASE_RUN_COUNT_MAX, Settings, coordinator_of
from .transport import Token

#: The most numbers of one call: those of the largest lease.
TAKE_COUNT_MAX = LEASE_RUN_COUNT_MAX * SEQUENCE_COUNT


class Client:
    """
    Generates call numbers of one namespace. Safe for use by several threads, and after a fork: a child leases runs of its own.

        with Client(holder="my-importer", expected_store_id=id_kept_with_the_archive) as client:
            store(message, client.next())  # "2VznWE2i"
    """

    def __init__(
        self,
        *,
        holder: str,
        coordinator: Optional[str] = None,
        token: Optional[Token] = None,
        namespace: str = "main",
        labels: Optional[Mapping[str, str]] = None,
        expected_store_id: Optional[str] = None,
        spare_runs: int = 0,
        max_runs_per_lease: int = LEASE_RUN_COUNT_MAX,
        wait_timeout_s: float = 30.0,
        request_timeout_s: float = 5.0,
    ) -> None:
        """
        Sends no request before the first number is wanted. Raises ValueError or TypeError for an invalid option.

        `holder`: the name of this process in the ledger, 1 to 64 printable characters. `labels`: at most 8, for operators.
        `coordinator`: its URL. Default: the variable `CALLNUMBER_COORDINATOR`, else `http://127.0.0.1:7300`.
        `token`: a bearer token, or a function that returns one, called before each request.
        `expected_store_id`: the id kept with the archive. Runs of any other store are rejected before the first number.
        `spare_runs`: runs to buffer for outages in addition to the one in use, 0 to 64. Each is 16,384 numbers.
        `max_runs_per_lease`: 1 to 64. A client starts with 1 and requests more only with more demand.
        `wait_timeout_s`: how long a call waits for a run, 0.001 to 3,600 s.
        `request_timeout_s`: how long one request may take to the end of its response, 0.001 to 600 s. Each further attempt
        may take twice as long as the one before, up to eight times and within `wait_timeout_s`.
        """
        self._settings = Settings(
            holder, labels or {}, namespace, expected_store_id, spare_runs, max_runs_per_lease, wait_timeout_s, request_timeout_s
        )
        self._coordinator = coordinator_of(coordinator, token)
        self._buffer = LeaseBuffer(self._settings, self._coordinator)

    @property
    def store_id(self) -> Optional[str]:
        """The id of the store, known after the first number. Keep it with the archive: `expected_store_id` next time."""
        return self._own_buffer().store_id

    def next(self) -> str:
        """
        Returns a call number; waits for a lease if no run is buffered, at most `wait_timeout_s`. No number is returned twice.

        Raises ClientError: why no run arrived (the coordinator's code, `coordinator_unreachable`, `wait_timeout`), after
        which the client stays usable; `client_closed`; or why it generates no more numbers at all (`store_mismatch`,
        `run_not_increasing`, `run_above_high_water_mark`, `store_id_mismatch`, `store_forked`).
        """
        while True:
            buffer = self._buffer
            try:
                number = buffer.numbers.popleft()
                # After the number was taken: a fork may come at any moment, and those of the parent are the parent's.
                if buffer.pid == getpid() and buffer.fork_count == Forks.count:
                    return number
            except IndexError:
                pass
            # Outside of the handler: a traceback would begin with the IndexError.
            self._own_buffer().encode_more(1)

    def take(self, count: int) -> List[str]:
        """
        Returns `count` call numbers, 1 to 1,048,576, in the order they were made. Waits as `next()` does for each further run.

        Raises ValueError or TypeError for another count; ClientError as `next()`, and the numbers made for the call are
        then discarded.
        """
        require_within("the count of take()", count, 1, TAKE_COUNT_MAX)
        buffer = self._own_buffer()
        buffer.request_for(count)
        taken: List[str] = []
        while len(taken) < count:
            try:
                taken.append(buffer.numbers.popleft())
                continue
            except IndexError:
                pass
            buffer.encode_more(count - len(taken))
        return taken if self._own_buffer() is buffer else self.take(count)

    def close(self) -> None:
        """
        Gives up all runs permanently and reports how far they got. Calls that wait get `client_closed`. Never raises: a
        report that fails is logged. May be called twice. In a forked child it ends the child's client alone.
        """
        self._own_buffer().close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Client can't be copied or sent to another process: create one there")

    def _own_buffer(self) -> LeaseBuffer:
        """That of this process: one permanently, also where two threads come here at once, so that a closed client stays so."""
        buffer = self._buffer
        process = (getpid(), Forks.count)
        if (buffer.pid, buffer.fork_count) != process:
            # One step, which needs no lock that a fork could copy while it is held. Never one from before the parent: its pid may come again.
            own = buffer.of_children.setdefault(process, LeaseBuffer(self._settings, self._coordinator, buffer))
            self._buffer = buffer = own
        return buffer
