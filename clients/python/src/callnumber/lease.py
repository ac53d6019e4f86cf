"""Leases, and the check of a response before any number is made from it. A response that fails is never used."""

from __future__ import annotations

import re
from typing import Any, Dict, NamedTuple, Optional

from .codec import RUN_COUNT, RUN_MAX, VERSION_MAX, described
from .errors import ClientError

_STORE_ID = re.compile(r"[!-~]{1,99}")
_PROOF = re.compile(r"[A-Za-z0-9_-]{43}")
_INSTANT_MAX_MS = 8_640_000_000_000_000


class Lease(NamedTuple):
    """Runs `first_run` to `first_run + run_count - 1` of one version, granted to this process alone."""

    store_id: str
    version: int
    first_run: int
    run_count: int
    nonce: str
    proof: str

    @property
    def last_run(self) -> int:
        return self.first_run + self.run_count - 1

    def ledger_id(self, run: int) -> int:
        """One rising number for a run of any version."""
        return self.version * RUN_COUNT + run


class Expected(NamedTuple):
    """What the response to one request must agree with."""

    namespace: str
    nonce: str
    run_count_max: int
    #: The only store whose runs may be used; None before the first lease of a client that pins none.
    store_id: Optional[str]
    #: Ledger id of the last run of this client; None for none.
    last_run: Optional[int]


def checked_lease(response: object, expected: Expected) -> Lease:
    """
    Returns the lease, if the response is the one that was requested. Raises ClientError: `invalid_response` (no response to
    this request), `store_mismatch` or `run_not_increasing` (the store is not the one, or not in the state, that this client
    knows: to go on would risk a number twice).
    """
    fields: Dict[str, Any] = response if isinstance(response, dict) else {}
    store_id, proof = fields.get("storeId"), fields.get("proof")
    if fields.get("nonce") != expected.nonce:
        raise _invalid("it does not echo the nonce of the request")
    if fields.get("namespace") != expected.namespace:
        raise _invalid("it is for another namespace")
    if not isinstance(store_id, str) or not _STORE_ID.fullmatch(store_id):
        raise _invalid("it names no store")
    if not isinstance(proof, str) or not _PROOF.fullmatch(proof):
        raise _invalid("it has no lease proof")
    version = _within(fields, "version", 0, VERSION_MAX)
    run_count = _within(fields, "runCount", 1, expected.run_count_max)
    first_run = _within(fields, "firstRun", 0, RUN_MAX - run_count + 1)
    _within(fields, "leasedAtMs", 0, _INSTANT_MAX_MS)
    lease = Lease(store_id, version, first_run, run_count, expected.nonce, proof)
    if expected.store_id not in (None, store_id):
        source = "this client expects store" if expected.last_run is None else "the numbers so far came from store"
        raise ClientError(
            "store_mismatch",
            f"the coordinator leases from store {store_id}, but {source} {expected.store_id}: use the coordinator of that "
            "store. Change the expected store id only if it was replaced on purpose, above all its numbers",
        )
    if expected.last_run is not None and lease.ledger_id(first_run) <= expected.last_run:
        raise ClientError(
            "run_not_increasing",
            f"the coordinator leased run {version}/{first_run}, which is not above the last run that this client got: its "
            "store has rolled back. This client generates no more numbers. Inform the operator",
        )
    return lease


def _within(fields: Dict[str, Any], field: str, least: int, greatest: int) -> int:
    value = fields.get(field)
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= greatest:
        return value
    shown = value if type(value) is int else described(value)
    raise _invalid(f"its {field} is {shown}, not a whole number from {least} to {greatest}")


def _invalid(reason: str) -> ClientError:
    return ClientError("invalid_response", f"the response to a lease request can't be used: {reason}")
