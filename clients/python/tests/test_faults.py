"""What else reaches a client over a bad network than `callnumber conformance` sends; and many threads. No number comes twice."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
import unittest
from types import FrameType
from typing import Any, Dict, List
from unittest import mock

from callnumber import Client, ClientError, buffer
from callnumber.transport import _TimeLimit
from scripted import Answer, created, raw, response
from test_client import ClientCase, runs_of, until


def trickling(pause_s: float) -> Answer:
    """A right lease, one byte at a time."""

    def send(lease: Dict[str, Any], connection: socket.socket) -> None:
        try:
            for byte in created(lease):
                connection.sendall(bytes([byte]))
                time.sleep(pause_s)
        except OSError:
            pass  # The client has left.

    return send


class SlowResponses(ClientCase):
    def test_the_caller_gets_its_error_in_time_although_bytes_still_arrive(self) -> None:
        self.coordinator.always = trickling(0.05)
        began = time.monotonic()
        with self.refused("wait_timeout"):
            self.client(wait_timeout_s=0.3).next()
        self.assertLess(time.monotonic() - began, 10)

    def test_the_time_limit_counts_again_where_the_process_had_no_time_to_read(self) -> None:
        with mock.patch("time.monotonic", return_value=100.0) as clock:
            limit = _TimeLimit(5.0)
            for now, left in ((104.0, 1.0), (107.5, 5.0), (112.0, 0.5)):
                clock.return_value = now
                self.assertAlmostEqual(limit.left_s(), left)
            clock.return_value = 112.6
            with self.assertRaises(socket.timeout):
                limit.left_s()

    def test_a_response_without_end_is_cut_and_fails_the_call(self) -> None:
        def endless(_: object, connection: socket.socket) -> None:
            connection.sendall(b"HTTP/1.1 201 x\r\n\r\n")
            while True:
                connection.sendall(b"x" * 65_536)

        self.coordinator.answers.append(endless)
        with self.refused("invalid_response", "longer than a coordinator does"):
            self.client().next()


class OtherResponses(ClientCase):
    def test_what_is_no_http_fails_the_call(self) -> None:
        self.coordinator.answers.append(raw(b"SSH-2.0-OpenSSH_9.2\r\n"))
        with self.refused("invalid_response", "does not speak HTTP"):
            self.client().next()

    def test_what_another_program_answers_fails_the_call_or_is_repeated(self) -> None:
        for code, status, body in [
            ("invalid_response", 200, b"<html>"),
            ("invalid_response", 201, b"null"),
            ("invalid_response", 201, b"[" * 60_000),
            ("invalid_response", 201, "{}".encode("utf-16")),
            ("invalid_response", 302, b"{}"),
            ("invalid_response", 404, b'{"code": 7, "message": "x"}'),
            ("invalid_response", 500, b'{"code": "of_the_future", "message": "x"}'),
            ("coordinator_unreachable", 502, b"<html>Bad Gateway"),
            ("coordinator_unreachable", 429, b"{}"),
            ("coordinator_unreachable", 503, b'{"code": "shutting_down", "message": "x", "retryAfterMs": "5"}'),
            ("coordinator_unreachable", 503, b'{"code": "shutting_down", "message": "x", "retryAfterMs": NaN}'),
        ]:
            with self.subTest(body[:60]):
                headers = ["location: /elsewhere"] if status == 302 else []
                self.coordinator.always = lambda *_: response(status, body, *headers)
                client = self.client(wait_timeout_s=0.1 if code == "coordinator_unreachable" else 300)
                self.gives_up(client, code)
                client.close()

    def test_an_error_keeps_the_reason_and_the_delay_of_the_coordinator(self) -> None:
        error = {"code": "store_corrupt", "message": "x", "reason": "claimed", "retryAfterMs": 1500}
        self.coordinator.always = lambda *_: response(503, error)
        with self.assertRaises(ClientError) as caught:
            self.client().next()
        self.assertEqual((caught.exception.reason, caught.exception.retry_after_s), ("claimed", 1.5))

    def test_a_path_that_the_coordinator_does_not_know_is_named(self) -> None:
        self.coordinator.always = lambda *_: response(404, {"code": "not_found", "message": "no route"})
        with self.refused("not_found", "no route. Leave /main out of the coordinator's URL"):
            Client(holder="x", coordinator=f"{self.coordinator.url}/main/").next()

    def test_a_url_where_none_listens_is_repeated_until_the_wait_ends(self) -> None:
        self.coordinator.__exit__()
        words = f"no coordinator answers at {self.coordinator.url} ("
        self.gives_up(self.client(wait_timeout_s=0.1), "coordinator_unreachable", words)

    def test_tls_to_a_plain_port_fails_the_call(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0))

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")

        threading.Thread(target=serve, daemon=True).start()
        self.addCleanup(listener.close)
        with self.refused("invalid_response", "does not speak TLS"):
            self.client(coordinator=f"https://127.0.0.1:{listener.getsockname()[1]}").next()


class Interrupts(ClientCase):
    """What a signal handler does at one chosen step of a call."""

    def test_an_exception_where_a_call_enters_the_lock_does_not_keep_it(self) -> None:
        client = self.client()

        def interrupt(frame: FrameType, event: str, _: object) -> None:
            caller = frame.f_back
            is_entered = event == "return" and frame.f_code.co_name == "__enter__"
            if is_entered and caller is not None and caller.f_code.co_filename == buffer.__file__:
                raise KeyboardInterrupt

        sys.setprofile(interrupt)
        try:
            with contextlib.suppress(KeyboardInterrupt):
                client.next()
        finally:
            sys.setprofile(None)
        made: List[str] = []
        threading.Thread(target=lambda: made.append(client.next()), daemon=True).start()
        until(lambda: made)


class Threads(ClientCase):
    def test_threads_share_one_request_in_flight_and_no_number(self) -> None:
        client = self.client()
        made: List[List[str]] = [[] for _ in range(16)]

        def work(mine: List[str]) -> None:
            for _ in range(1_500):
                mine.append(client.next())
            for _ in range(3):
                mine.extend(client.take(700))

        threads = [threading.Thread(target=work, args=(mine,)) for mine in made]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        together = [number for mine in made for number in mine]
        self.assertEqual(len(together), 16 * 3_600)
        self.assertEqual(len(set(together)), len(together))
        self.assertEqual(self.coordinator.in_flight_max, 1)

    def test_close_during_the_calls_of_threads_reports_no_number_too_few(self) -> None:
        client = self.client()
        made: List[str] = []

        def work() -> None:
            try:
                while True:
                    made.append(client.next())
            except ClientError as error:
                self.assertEqual(error.code, "client_closed")

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        until(lambda: len(made) > 500)
        client.close()
        for thread in threads:
            thread.join()
        self.assertEqual(len(set(made)), len(made))
        last_run = max(runs_of(made))
        last = [report for report in self.coordinator.reports if report["run"] == last_run]
        self.assertEqual(last[-1]["lastSequence"] + 1, sum(1 for number in made if runs_of([number]) == [last_run]))


if __name__ == "__main__":
    unittest.main()
