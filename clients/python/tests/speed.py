"""
Prints how many numbers a second `next()` and `take(1000)` make, from leases that cost no time: `python3 tests/speed.py` with
`PYTHONPATH=src`. The best of five rounds, by the clock and by the processor time of this process.
"""

from __future__ import annotations

import time
from typing import Callable, Dict, Tuple
from unittest import mock

from callnumber import Client
from callnumber.transport import Coordinator

ROUND_COUNT = 100_000
_mark = 0


def granted(_: Coordinator, path: str, body: Dict[str, object], timeout_s: float) -> object:
    """What a coordinator that answers at once would."""
    global _mark
    count = body.get("runCount")
    if not isinstance(count, int):
        return {}
    first, _mark = _mark + 1, _mark + count
    lease = {"namespace": "main", "storeId": "s", "version": 0, "firstRun": first, "runCount": count}
    return {**lease, "leasedAtMs": 1, "nonce": body["nonce"], "proof": "r" * 43}


def best_of(rounds: int, work: Callable[[], object]) -> Tuple[float, float]:
    by_clock, by_processor = [], []
    for _ in range(rounds):
        began, used = time.perf_counter(), time.process_time()
        work()
        by_clock.append(time.perf_counter() - began)
        by_processor.append(time.process_time() - used)
    return ROUND_COUNT / min(by_clock), ROUND_COUNT / min(by_processor)


def main() -> None:
    with mock.patch.object(Coordinator, "post", granted), Client(holder="speed") as client:
        works: Dict[str, Callable[[], object]] = {
            "next()": lambda: [client.next() for _ in range(ROUND_COUNT)],
            "take(1000)": lambda: [client.take(1_000) for _ in range(ROUND_COUNT // 1_000)],
        }
        for name, work in works.items():
            clock, processor = best_of(5, work)
            print(f"{name}: {clock / 1e6:.2f} M numbers a second, {processor / 1e6:.2f} M by processor time")


if __name__ == "__main__":
    main()
