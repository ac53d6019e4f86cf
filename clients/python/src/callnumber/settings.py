"""The options of a client, checked."""

from __future__ import annotations

import os
import re
import socket
import unicodedata
from dataclasses import dataclass
from typing import Dict, Mapping, Optional, Pattern

from .codec import described, require_within
from .transport import Coordinator, Token

#: The most runs of one lease.
LEASE_RUN_COUNT_MAX = 64
_NAMESPACE = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_LABEL_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,31}")
_STORE_ID = re.compile(r"\S+")
_NAME_CHARACTERS = "characters a-z, 0-9, dot, dash, underscore"


@dataclass(frozen=True)
class Settings:
    """Raises ValueError or TypeError that names the option and its value."""

    holder: str
    labels: Mapping[str, str]
    namespace: str
    expected_store_id: Optional[str]
    spare_runs: int
    max_runs_per_lease: int
    wait_timeout_s: float
    request_timeout_s: float

    def __post_init__(self) -> None:
        _require_match("namespace", self.namespace, _NAMESPACE, f"1 to 63 {_NAME_CHARACTERS}")
        _require_printable("holder", self.holder)
        if not isinstance(self.labels, Mapping):
            raise TypeError(f"labels must be names with values, not {described(self.labels)}")
        require_within("the number of labels", len(self.labels), 0, 8)
        for name, value in self.labels.items():
            _require_match("a label's name", name, _LABEL_NAME, f"1 to 32 {_NAME_CHARACTERS}")
            _require_printable(f"the label {name}", value)
        if self.expected_store_id is not None:
            _require_match("expected_store_id", self.expected_store_id, _STORE_ID, "a store id without white space")
        require_within("spare_runs", self.spare_runs, 0, LEASE_RUN_COUNT_MAX)
        require_within("max_runs_per_lease", self.max_runs_per_lease, 1, LEASE_RUN_COUNT_MAX)
        _require_seconds("wait_timeout_s", self.wait_timeout_s, 3_600)
        _require_seconds("request_timeout_s", self.request_timeout_s, 600)

    def holder_of_process(self) -> Dict[str, object]:
        """This process, as the ledger names it."""
        return {"name": self.holder, "host": socket.gethostname(), "pid": os.getpid(), "labels": dict(self.labels)}


def coordinator_of(url: Optional[str], token: Optional[Token]) -> Coordinator:
    """The coordinator at the URL; without one, that of `CALLNUMBER_COORDINATOR` or of this machine."""
    from_environment = os.environ.get("CALLNUMBER_COORDINATOR")
    if url is None and from_environment is not None:
        return Coordinator(from_environment, token, "CALLNUMBER_COORDINATOR")
    return Coordinator("http://127.0.0.1:7300" if url is None else url, token, "coordinator")


def _require_match(name: str, value: object, pattern: Pattern[str], rule: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be {rule}, not {described(value)}")
    if not pattern.fullmatch(value):
        raise ValueError(f"{name} must be {rule}, not {described(value)}")


def _require_printable(name: str, value: object) -> None:
    """No control, format, private or unpaired surrogate character: people read these in terminals and logs."""
    rule = "a string of 1 to 64 printable characters"
    if not isinstance(value, str):
        raise TypeError(f"{name} must be {rule}, not {described(value)}")
    categories = {unicodedata.category(character) for character in value}
    if not 1 <= len(value) <= 64 or categories & {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}:
        raise ValueError(f"{name} must be {rule}, not {described(value)}")


def _require_seconds(name: str, value: float, greatest: int) -> None:
    if type(value) not in (int, float):
        raise TypeError(f"{name} must be a number of seconds, not {described(value)}")
    if not 0.001 <= value <= greatest:
        raise ValueError(f"{name} must be 0.001 to {greatest} seconds, not {value}")
