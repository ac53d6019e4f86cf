"""What else reaches a client over a bad network than `callnumber conformance` sends; and many threads. No number comes twice."""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
import threading
import time
import unittest
from types import FrameType
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Tuple
from unittest import mock

from callnumber import Client, ClientError, buffer, decode
from callnumber.codec import SEQUENCE_COUNT, numbers_of_block
from callnumber.transport import _TimeLimit
from scripted import Answer, created, raw, refusal, response
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


class SeveralAddresses(ClientCase):
    def test_a_host_whose_first_address_is_dead_gives_a_lease_within_one_attempt(self) -> None:
        resolve = socket.getaddrinfo
        with dead_address() as dead:
            live = ("127.0.0.1", self.coordinator.port)

            def found(host: str, *given: Any, **more: Any) -> List[Any]:
                if host != "several.test":
                    return resolve(host, *given, **more)
                return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in (dead, live)]

            with mock.patch("socket.getaddrinfo", found):
                self.client(coordinator="http://several.test:1", request_timeout_s=4).next()


@contextlib.contextmanager
def dead_address() -> Iterator[Tuple[str, int]]:
    """Where a connection is neither accepted nor refused, as on a machine that is down: its queue is full."""
    with contextlib.ExitStack() as held:
        listening = held.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = held.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield listening.getsockname()


class Chunks(ClientCase):
    HEAD = b"HTTP/1.1 201 x\r\ntransfer-encoding: chunked\r\n\r\n"

    def test_a_lease_in_chunks_is_used(self) -> None:
        def chunked(lease: Dict[str, Any], _: object) -> bytes:
            body = created(lease).partition(b"\r\n\r\n")[2]
            chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:7], body[7:])]
            return self.HEAD + b"".join(chunks) + b"0\r\n\r\n"

        self.coordinator.answers.append(chunked)
        self.client().next()

    def test_a_chunk_of_a_negative_size_fails_the_call(self) -> None:
        for size in (b"-5", b"-2", b"-1", b"-ffffffffffffffffffff"):
            self.coordinator.answers.append(raw(self.HEAD + size + b"\r\nhello"))
            with self.subTest(size), self.refused("invalid_response"):
                self.client().next()

    def test_chunks_without_end_are_cut(self) -> None:
        for start, repeated, words in [
            (b"-1\r\n", b"x" * 4_096, "does not speak HTTP"),
            (b"", b"1\r\nx\r\n" * 500, "longer than a coordinator does"),
            (b"ffffffffff\r\n", b"x" * 4_096, "longer than a coordinator does"),
        ]:

            def endless(_: object, connection: socket.socket) -> None:
                connection.sendall(self.HEAD + start)
                while True:
                    connection.sendall(repeated)

            self.coordinator.answers.append(endless)
            with self.subTest(start), self.refused("invalid_response", words):
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
            ("coordinator_unreachable", 503, b'{"code": "shutting_down", "message": "x", "retryAfterMs": 1%s}' % (b"0" * 400)),
            ("invalid_response", 400, b'{"code": "forbidden", "message": "x", "retryAfterMs": 1%s}' % (b"0" * 400)),
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

    def around_start(self, before: Callable[[], object], after: Callable[[], object]) -> ContextManager[object]:
        """At the first start of a thread for a lease."""
        real, steps = threading.Thread.start, [before, after]

        def start(thread: threading.Thread) -> None:
            own = steps[:] if thread.name == "callnumber-lease" else []
            del steps[: len(own)]
            for step in own[:1]:
                step()
            real(thread)
            for step in own[1:]:
                step()

        return mock.patch.object(threading.Thread, "start", start)

    def test_a_signal_handler_takes_a_number_while_its_thread_starts_a_request(self) -> None:
        for index in range(2):
            client = self.client()
            steps: List[Callable[[], object]] = [lambda: None, lambda: None]
            made: List[str] = []
            steps[index] = lambda: made.append(client.next())
            with self.subTest(index), self.around_start(*steps):
                made += [client.next(), *client.take(20_000)]
                self.assertEqual(len(set(made)), 20_002)
                until(lambda: client._buffer._request is None)

    def test_a_signal_handler_takes_numbers_while_its_thread_encodes(self) -> None:
        for count in (1, 200, 20_000):
            client = self.client()
            client.take(100)
            made: List[str] = []

            def interrupted(*arguments: int) -> List[str]:
                if not made:
                    with mock.patch("callnumber.buffer.numbers_of_block", numbers_of_block):
                        made.extend(client.take(count))
                return numbers_of_block(*arguments)

            with self.subTest(count), mock.patch("callnumber.buffer.numbers_of_block", interrupted):
                made += client.take(29)
                run = decode(made[-1]).run
                client.close()
                self.assertEqual(len(set(made)), count + 29)
                reported = [report["lastSequence"] for report in self.coordinator.own_reports if report["run"] == run]
                self.assertEqual(reported, [max(decode(number).sequence for number in made if decode(number).run == run)])

    def test_an_exception_while_a_request_starts_leaves_the_client_usable(self) -> None:
        def interrupt() -> None:
            raise KeyboardInterrupt

        for index in range(2):
            client = self.client()
            steps: List[Callable[[], object]] = [lambda: None, lambda: None]
            steps[index] = interrupt
            with self.subTest(index), self.around_start(*steps):
                with self.assertRaises(KeyboardInterrupt):
                    client.next()
                client.next()


class Ends(ClientCase):
    """Whatever ends the thread of a request: the caller gets an error, and the next call a number."""

    def test_a_token_function_that_exits(self) -> None:
        for error in (SystemExit("the vault is sealed"), GeneratorExit("the vault is sealed")):
            errors: List[BaseException] = [error]

            def token() -> str:
                if errors:
                    raise errors.pop()
                return "token"

            client = self.client(token=token)
            with self.subTest(error), self.refused("internal_error", "the vault is sealed"):
                client.next()
            client.next()

    def test_a_token_function_that_exits_does_not_end_close(self) -> None:
        tokens = ["token"]

        def token() -> str:
            return tokens.pop() if tokens else sys.exit("the vault is sealed")

        client = self.client(token=token)
        client.next()
        client.close()

    def test_a_token_function_that_closes_the_client(self) -> None:
        failures: List[BaseException] = []

        def token() -> str:
            try:
                client.close()
            except BaseException as error:
                failures.append(error)
            return "token"

        client = self.client(token=token)
        with self.refused("client_closed"):
            client.next()
        client._buffer._requester.join()  # type: ignore[union-attr]
        self.assertEqual(failures, [])

    def test_a_handler_of_the_log_that_fails(self) -> None:
        self.coordinator.answers.append(refusal("store_recovering", 0))
        client = self.client()
        with mock.patch("callnumber.leasing.logger.info", side_effect=OSError("the disk is full")):
            with self.refused("internal_error", "the disk is full"):
                client.next()
        client.next()

    def test_every_record_is_logged_without_the_lock(self) -> None:
        client = self.client()
        texts: List[str] = []
        enter = self.entered_by_another

        class Handler(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                enter(client)
                texts.append(record.getMessage())

        def after_two(lease: Dict[str, Any], _: object) -> bytes:
            until(lambda: len(texts) == 2)
            return created(lease)

        logger, handler = logging.getLogger("callnumber"), Handler()
        self.addCleanup(logger.setLevel, logger.level)
        self.addCleanup(logger.removeHandler, handler)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        self.coordinator.answers.append(refusal("store_recovering", 0))
        self.coordinator.answers.append(after_two)
        self.coordinator.answers.append(refusal("store_forked"))
        with mock.patch("callnumber.buffer._WARNING_AFTER_S", 0.0):
            client.next()
        with self.refused("store_forked"):
            client.take(3 * SEQUENCE_COUNT)
        until(lambda: len(texts) == 4)
        self.assertEqual(len([text for text in texts if "keeps trying" in text or "come again" in text]), 2)
        self.assertEqual(len([text for text in texts if "attempt 1" in text or "no more" in text]), 2)

    def entered_by_another(self, client: Client) -> None:
        entered = threading.Event()

        def enter() -> None:
            with client._buffer._mutex:
                entered.set()

        threading.Thread(target=enter, daemon=True).start()
        until(entered.is_set)

    def test_a_handler_of_the_log_that_fails_does_not_end_close(self) -> None:
        client = self.client()
        client.next()
        self.coordinator.__exit__()
        with mock.patch("callnumber.leasing.logger.warning", side_effect=OSError("the disk is full")):
            client.close()

    def test_where_no_thread_can_be_started(self) -> None:
        client = self.client()
        limit = mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread"))
        with limit, self.refused("internal_error", "can't start new thread"):
            client.next()
        client.next()
        with limit, self.refused("internal_error", "can't start new thread"):
            client.take(3 * SEQUENCE_COUNT)
        with limit, self.refused("internal_error", "can't start new thread"):
            client.next()
        client.next()
        run = client._buffer._held.run  # type: ignore[union-attr]
        client.close()
        self.assertEqual([(report["run"], report["lastSequence"]) for report in self.coordinator.own_reports], [(run, 0)])

    def test_close_where_no_thread_could_be_started(self) -> None:
        client = self.client()
        with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")):
            with self.refused("internal_error"):
                client.next()
            client.close()


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
