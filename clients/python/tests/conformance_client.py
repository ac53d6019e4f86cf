"""The client as `callnumber conformance` drives it."""

from __future__ import annotations

import os
import sys

from callnumber import Client, ClientError


def main() -> None:
    client = Client(
        holder="conformance",
        token=os.environ.get("CALLNUMBER_TOKEN"),
        expected_store_id=os.environ.get("CALLNUMBER_EXPECTED_STORE_ID"),
        request_timeout_s=int(os.environ["CALLNUMBER_REQUEST_TIMEOUT_MS"]) / 1000,
        wait_timeout_s=int(os.environ["CALLNUMBER_WAIT_TIMEOUT_MS"]) / 1000,
    )
    for line in sys.stdin:
        command, _, count = line.strip().partition(" ")
        child = os.fork() if command == "fork" else None
        try:
            if command in ("next", "fork"):
                # Written at once: a child shares the pipe.
                sys.stdout.write("\n".join([*client.take(int(count)), ""]))
                sys.stdout.flush()
            elif command == "close":
                client.close()
            answer = "ok"
        except ClientError as error:
            answer = f"error {error.code} {error}"
        if child == 0:
            os._exit(0)  # Its parent answers.
        if child is not None:
            os.waitpid(child, 0)
        print(answer, flush=True)


if __name__ == "__main__":
    main()
