"""
generating-process.mjs in Python, with a fork after its first numbers: both processes generate numbers from then on. The child ends soon after its parent.
"""

import json
import logging
import os
import sys
import threading
import time

import callnumber.leasing
from callnumber import Client, ClientError

#: In one write, which a pipe takes as a whole: those of two processes do not mix.
NUMBERS_PER_WRITE = 512

settings = json.loads(sys.argv[1])
stop = threading.Event()
checked_lease = callnumber.leasing.checked_lease


def report(event, **fields):
    line = json.dumps({"event": event, "atMs": int(time.time() * 1000), "pid": os.getpid(), **fields})
    os.write(3, f"{line}\n".encode())


def noted_lease(response, expected):
    lease = checked_lease(response, expected)
    report("lease", storeId=lease.store_id, version=lease.version, firstRun=lease.first_run, runCount=lease.run_count)
    return lease


class Noted(logging.Handler):
    """Of an attempt that failed (info), and of a client that stopped (error)."""

    def emit(self, record):
        event = {logging.INFO: "away", logging.ERROR: "alarm"}.get(record.levelno)
        for error in record.args:
            if event is not None and isinstance(error, ClientError):
                report(event, code=error.code, message=error.message)


def await_stop():
    if sys.stdin.readline() == "":
        os._exit(1)
    stop.set()


callnumber.leasing.checked_lease = noted_lease
logging.getLogger("callnumber").addHandler(Noted())
logging.getLogger("callnumber").setLevel(logging.INFO)
threading.Thread(target=await_stop, daemon=True).start()
client = Client(
    holder=settings["holder"]["name"],
    coordinator=settings["coordinator"],
    namespace=settings["namespace"],
    expected_store_id=settings.get("expectedStoreId"),
    max_runs_per_lease=settings.get("maxRunsPerLease", 1),
    wait_timeout_s=settings["waitTimeoutMs"] / 1000,
)
parent, child = os.getppid(), None
while not stop.is_set() and os.getppid() == parent:
    try:
        numbers = client.take(settings["takeCount"])
    except ClientError as error:
        report("refused", code=error.code, message=error.message)
        time.sleep(0.1)
        continue
    for start in range(0, len(numbers), NUMBERS_PER_WRITE):
        os.write(1, "".join(numbers[start : start + NUMBERS_PER_WRITE]).encode())
    if child is None:
        own = os.getpid()
        child = os.fork()
        if child == 0:
            # Not getppid(): the parent may be killed already.
            parent = own
    time.sleep(settings["pauseMs"] / 1000)
client.close()
os._exit(0)
