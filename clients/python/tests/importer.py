"""
An importer for the tests of the repository, with a real coordinator: prints `pid number` for each number.
    importer.py COUNT [--batch N] [--pause-ms N] [--fork] [--spare-runs N] [--token T] [--expected-store-id ID] [--namespace NS]
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time

from callnumber import Client, ClientError


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--pause-ms", type=int, default=0, help="after each batch")
    parser.add_argument("--fork", action="store_true", help="halfway, a child goes on, too")
    parser.add_argument("--spare-runs", type=int, default=0)
    parser.add_argument("--token")
    parser.add_argument("--expected-store-id")
    parser.add_argument("--namespace", default="main")
    given = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    child = -1
    try:
        with Client(
            holder="python-importer",
            token=given.token,
            namespace=given.namespace,
            expected_store_id=given.expected_store_id,
            spare_runs=given.spare_runs,
            wait_timeout_s=600,
        ) as client:
            for made in range(0, given.count, given.batch):
                numbers = client.take(given.batch - 1) + [client.next()]
                print("".join(f"{os.getpid()} {number}\n" for number in numbers), end="", flush=True)
                time.sleep(given.pause_ms / 1000)
                if given.fork and child == -1 and made >= given.count // 2:
                    child = os.fork()
            print(f"store {client.store_id}", flush=True)
    except ClientError as error:
        print(f"{error.code}: {error}", file=sys.stderr)
        return 1
    if child > 0:
        return os.waitpid(child, 0)[1]
    return 0


if __name__ == "__main__":
    sys.exit(main())
