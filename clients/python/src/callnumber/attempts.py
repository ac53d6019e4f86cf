"""How long an attempt to lease may take, how long the client waits before the next one, and what a failed one raises."""

from __future__ import annotations

import random

from .errors import ClientError
from .settings import Settings

#: The time limit of a request doubles as often as this.
_DOUBLINGS_MAX = 3
_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.1, 10.0
#: Clients that got the same Retry-After in the same instant come back spread over so long.
_SPREAD_S = 1.0
_LONGEST_RETRY_AFTER_S = 60.0


def time_limit_s(settings: Settings, attempt: int) -> float:
    """
    The time limit of an attempt (1, 2, …) to lease. It grows, because a coordinator with a queue longer than the limit would
    lease to clients that have left, and serve none.
    """
    grown = settings.request_timeout_s * 2.0 ** min(attempt - 1, _DOUBLINGS_MAX)
    return min(grown, max(settings.request_timeout_s, settings.wait_timeout_s))


def delay_s(attempt: int, retry_after_s: float) -> float:
    """A random delay on top of what the coordinator requested, so that many importers do not come back in one instant."""
    requested = min(retry_after_s, _LONGEST_RETRY_AFTER_S)
    # The power stays within a float.
    grown = _FIRST_DELAY_S * 2.0 ** min(attempt - 1, 10)
    bound = min(_LONGEST_DELAY_S, max(grown, min(requested, _SPREAD_S)))
    return requested + random.random() * bound


def as_client_error(error: BaseException) -> ClientError:
    """Of a bug, or of a function that returned an invalid token."""
    if isinstance(error, ClientError):
        return error
    wrapped = ClientError("internal_error", str(error) or type(error).__name__)
    wrapped.__cause__ = error
    return wrapped
