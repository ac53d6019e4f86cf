"""The rules of the client, against a coordinator that a test plays over real sockets."""

from __future__ import annotations

import copy
import logging
import os
import pickle
import threading
import time
import unittest
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Tuple, Type
from unittest import mock

from callnumber import TAKE_COUNT_MAX, Client, ClientError, decode
from callnumber.attempts import delay_s, time_limit_s
from callnumber.codec import SEQUENCE_COUNT, SEQUENCE_MAX
from scripted import ScriptedCoordinator, created, refusal, response, with_fields

logging.getLogger("callnumber").setLevel(logging.CRITICAL)


def runs_of(numbers: List[str]) -> List[int]:
    return list(dict.fromkeys(decode(number).run for number in numbers))


def until(condition: Callable[[], Any]) -> None:
    """The limit only ends a hang."""
    end = time.monotonic() + 120
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it did not come to be")
        time.sleep(0.002)


class ClientCase(unittest.TestCase):
    """Has a coordinator, and no pause before a retry where the coordinator requests none."""

    def setUp(self) -> None:
        self.coordinator = ScriptedCoordinator()
        self.addCleanup(self.coordinator.__exit__)
        patched = mock.patch("random.random", return_value=0.0)
        patched.start()
        self.addCleanup(patched.stop)

    def client(self, **options: Any) -> Client:
        # On a busy machine a response may take long: no limit but that of a test decides.
        options = {"coordinator": self.coordinator.url, "wait_timeout_s": 300, "request_timeout_s": 300, **options}
        client = Client(holder="test", **options)
        self.addCleanup(client.close)
        return client

    def without_prefetch(self, **options: Any) -> Client:
        patched = mock.patch("callnumber.leasing.Demand.refill_at", return_value=SEQUENCE_COUNT)
        patched.start()
        self.addCleanup(patched.stop)
        return self.client(**options)

    @contextmanager
    def refused(self, code: str, words: str = "") -> Iterator[None]:
        with self.assertRaises(ClientError) as caught:
            yield
        self.assertEqual(caught.exception.code, code)
        self.assertIn(words, str(caught.exception))

    def gives_up(self, client: Client, code: str, words: str = "") -> None:
        """Calls until a response has come within the short wait of the client."""
        for _ in range(1_000):
            with self.assertRaises(ClientError) as caught:
                client.next()
            if caught.exception.code != "wait_timeout":
                break
        self.assertEqual(caught.exception.code, code)
        self.assertIn(words, str(caught.exception))


class Numbers(ClientCase):
    def test_next_and_take_return_the_sequences_of_a_run_in_order_each_once(self) -> None:
        client = self.client()
        made = [client.next(), *client.take(3), client.next(), *client.take(300), client.next()]
        self.assertEqual([decode(number) for number in made], [(0, 1, sequence) for sequence in range(306)])

    def test_a_call_number_includes_a_version_above_0(self) -> None:
        self.coordinator.always = with_fields(version=7)
        self.assertEqual(decode(self.client().next()), (7, 1, 0))

    def test_take_uses_each_run_to_its_last_sequence(self) -> None:
        made = self.client().take(SEQUENCE_COUNT + 1_000)
        expected = [(0, 1 + index // SEQUENCE_COUNT, index % SEQUENCE_COUNT) for index in range(len(made))]
        self.assertEqual([decode(number) for number in made], expected)

    def test_take_rejects_every_other_count_as_misuse(self) -> None:
        client = self.client()
        for count in (0, -1, TAKE_COUNT_MAX + 1):
            with self.assertRaisesRegex(ValueError, "count of take"):
                client.take(count)
        for wrong in (1.0, "3", None, True):
            with self.assertRaisesRegex(TypeError, "count of take"):
                client.take(wrong)  # type: ignore[arg-type]
        self.assertEqual(self.coordinator.requests, [])

    def test_a_client_can_be_neither_copied_nor_pickled(self) -> None:
        client = self.client()
        copying: List[Callable[[Any], Any]] = [copy.copy, copy.deepcopy, pickle.dumps]
        for copied in copying:
            with self.assertRaisesRegex(TypeError, "can't be copied"):
                copied(client)

    def test_an_error_can_be_sent_to_another_process(self) -> None:
        error = ClientError("store_recovering", "the words", reason="claimed", retry_after_s=2.0)
        received = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(received), vars(received)), ("the words", vars(error)))


class Demand(ClientCase):
    def used(self, use: Callable[[Client], object], **options: Any) -> List[int]:
        client = self.client(**options)
        use(client)
        # A lease that is not requested yet would not be when the client closes.
        until(lambda: client._buffer._request is None)
        client.close()
        self.assertEqual(len(self.coordinator.reports), len(self.coordinator.requests))
        return self.coordinator.run_counts

    def test_next_leases_one_run_for_9000_numbers_and_the_next_one_before_the_end(self) -> None:
        self.assertEqual(self.used(lambda client: [client.next() for _ in range(9_000)]), [1])
        self.coordinator.requests.clear()
        self.coordinator.reports.clear()
        self.assertEqual(self.used(lambda client: [client.next() for _ in range(SEQUENCE_COUNT)]), [1, 1])

    def test_take_leases_what_it_needs_at_once(self) -> None:
        self.assertEqual(self.used(lambda client: client.take(50_000)), [4])

    def test_take_requests_what_is_missing_before_the_numbers_at_hand_are_used(self) -> None:
        def use(client: Client) -> None:
            client.take(5_000)
            client._buffer.request_for(80_000)
            until(lambda: client._buffer._request is None)
            client.take(80_000)
            self.assertEqual(runs_of(client.take(1)), [6])

        self.assertEqual(self.used(use), [1, 5])

    def test_missing_runs_are_requested_while_numbers_are_at_hand(self) -> None:
        client = self.client()
        client.take(5_000)
        client._buffer.request_for(80_000)
        until(lambda: len(self.coordinator.requests) == 2)
        self.assertEqual(self.coordinator.run_counts, [1, 5])

    def test_spare_runs_at_hand_are_not_requested_again(self) -> None:
        demand = self.client(spare_runs=4)._buffer._demand
        self.assertEqual([demand.run_count_to_request(0, held) for held in (0, 2, 3)], [4, 2, 1])
        self.assertEqual(demand.run_count_to_request(1, 0), 5)

    def test_leases_grow_with_demand_to_half_of_what_was_used_and_no_further_than_allowed(self) -> None:
        client = self.client(max_runs_per_lease=2)
        for used in range(1, 15):
            client.take(SEQUENCE_COUNT)
            self.assertLessEqual(self.coordinator.mark, 1.5 * used + 5)
        self.assertEqual(max(self.coordinator.run_counts), 2)

    def test_the_client_keeps_spare_runs_and_makes_numbers_of_them_in_an_outage(self) -> None:
        client = self.client(spare_runs=4)
        client.next()
        until(lambda: self.coordinator.mark == 5)
        until(lambda: len(client._buffer._stock) == 4)
        self.assertEqual([request["spareRunCount"] for request in self.coordinator.requests][0], 0)
        self.coordinator.always = refusal("store_unavailable", 20)
        self.assertEqual(runs_of(client.take(5 * SEQUENCE_COUNT - 1)), [1, 2, 3, 4, 5])
        self.coordinator.always = lambda lease, _: created(lease)
        self.assertGreater(runs_of(client.take(2))[-1], 5)

    def test_a_lease_that_lasted_long_halves_the_next_one(self) -> None:
        client = self.client()
        client.next()
        demand = client._buffer._demand
        demand._run_count = 6
        self.assertEqual(demand.run_count_to_request(0, 0), 6)
        for halved in (3, 1, 1):
            demand._last_lease_at -= 11
            self.assertEqual(demand.run_count_to_request(0, 0), halved)


class Requests(ClientCase):
    def test_a_request_has_the_holder_the_clock_and_the_evidence_of_the_lease_before(self) -> None:
        client = self.client(labels={"shard": "3"}, namespace="lists", token=lambda: " cn_secret\n")
        first = client.take(SEQUENCE_COUNT * 3 // 4 + 200)
        until(lambda: len(self.coordinator.requests) == 2)
        one, two = self.coordinator.requests
        self.assertEqual(runs_of(first), [1])
        self.assertEqual((one["lastRun"], one["proof"]), (None, None))
        self.assertEqual((two["lastRun"], two["proof"]), (1, "1".rjust(43, "r")))
        self.assertEqual((one["holder"]["name"], one["holder"]["labels"]), ("test", {"shard": "3"}))
        self.assertLess(abs(one["sentAtMs"] - time.time() * 1000), 300_000)
        self.assertNotEqual(one["nonce"], two["nonce"])
        self.assertRegex(one["nonce"], "^[A-Za-z0-9_-]{16}$")
        headers = self.coordinator.headers[0]
        self.assertEqual(headers["authorization"], "Bearer cn_secret")
        self.assertEqual(headers["path"], "/v1/namespaces/lists/leases")

    def test_the_client_retries_with_a_new_nonce_and_not_before_the_requested_time(self) -> None:
        self.coordinator.answers.extend(
            [refusal("store_unavailable", 30), lambda *_: response(503, {}, "retry-after: 0"), refusal("rate_limited", 30)]
        )
        began = time.monotonic()
        self.assertEqual(runs_of([self.client().next()]), [4])
        self.assertGreaterEqual(time.monotonic() - began, 0.06)
        self.assertEqual(len({request["nonce"] for request in self.coordinator.requests}), 4)

    def test_the_pause_grows_up_to_10_seconds_and_never_ends_before_retry_after(self) -> None:
        for attempt, retry_after_s, least, most in [
            (1, 0.0, 0.0, 0.1),
            (2, 0.0, 0.0, 0.2),
            (8, 0.0, 0.0, 10.0),
            (5_000, 0.0, 0.0, 10.0),
            (1, 5.0, 5.0, 6.0),
            (9, 5.0, 5.0, 15.0),
            (1, 9_999.0, 60.0, 61.0),
        ]:
            self.assertEqual(delay_s(attempt, retry_after_s), least)
            with mock.patch("random.random", return_value=1.0):
                self.assertAlmostEqual(delay_s(attempt, retry_after_s), most)

    def test_the_time_limit_of_an_attempt_doubles_up_to_eight_times_within_the_wait(self) -> None:
        def limits(**options: float) -> List[float]:
            settings = self.client(**options)._settings
            return [time_limit_s(settings, attempt) for attempt in range(1, 6)]

        self.assertEqual(limits(request_timeout_s=5, wait_timeout_s=30), [5, 10, 20, 30, 30])
        self.assertEqual(limits(request_timeout_s=5, wait_timeout_s=600), [5, 10, 20, 40, 40])
        self.assertEqual(limits(request_timeout_s=5, wait_timeout_s=1), [5, 5, 5, 5, 5])

    def test_a_refusal_that_no_retry_fixes_reaches_the_caller_and_the_client_stays_usable(self) -> None:
        client = self.client()
        for code in ("namespace_not_found", "unauthorized", "forbidden", "run_space_exhausted", "invalid_request"):
            self.coordinator.answers.append(refusal(code, status=400))
            count = len(self.coordinator.requests)
            with self.refused(code, f"refused: {code}"):
                client.next()
            self.assertEqual(len(self.coordinator.requests), count + 1)
        client.next()

    def test_the_wait_ends_with_the_last_reason(self) -> None:
        self.coordinator.always = refusal("store_recovering", 10)
        for wait_s, shown in [(0.1, "0.1 s"), (1.0, "1 s")]:
            self.gives_up(self.client(wait_timeout_s=wait_s), "store_recovering", f"no run came within {shown}: refused")

    def test_an_error_of_the_coordinator_has_no_other_error_before_it(self) -> None:
        calls: List[Callable[[Client], object]] = [Client.next, lambda client: client.take(1)]
        for call in calls:
            self.coordinator.answers.append(refusal("forbidden"))
            with self.assertRaises(ClientError) as caught:
                call(self.client())
            self.assertIsNone(caught.exception.__context__)

    def test_take_gets_an_error_that_came_before_it_waited(self) -> None:
        self.coordinator.answers.append(refusal("forbidden"))
        client = self.client()
        encode_more = client._buffer.encode_more

        def late(wanted: int) -> None:
            until(lambda: client._buffer._request is None)
            encode_more(wanted)

        with mock.patch.object(client._buffer, "encode_more", late), self.refused("forbidden"):
            client.take(1)

    def test_the_wait_ends_where_no_response_came_at_all(self) -> None:
        self.coordinator.always = lambda *_: time.sleep(60)
        with self.refused("wait_timeout", "has not answered yet"):
            self.client(wait_timeout_s=0.1).next()

    def test_a_caller_that_waits_two_seconds_warns_once_in_an_outage_and_says_when_it_is_over(self) -> None:
        client = self.without_prefetch(wait_timeout_s=0.2)
        with mock.patch("callnumber.buffer._WARNING_AFTER_S", 0.01), self.assertLogs("callnumber", logging.INFO) as logged:
            for _ in range(2):
                self.coordinator.always = refusal("store_recovering", 50)
                for _ in range(2):
                    self.gives_up(client, "store_recovering")
                self.coordinator.always = lambda lease, _: created(lease)
                until(lambda: client._buffer._stock)
                client.take(SEQUENCE_COUNT)
        texts = [record.getMessage()[:16] for record in logged.records]
        self.assertEqual([text for text in texts if "attempt" not in text], ["no run came with", "runs come again"] * 2)

    def test_a_token_function_that_fails_fails_the_call_with_its_cause(self) -> None:
        def token() -> str:
            raise OSError("the vault is sealed")

        with self.refused("internal_error", "the token function failed (OSError: the vault is sealed)"):
            self.client(token=token).next()
        with self.refused("internal_error", "the token function returned None"):
            self.client(token=lambda: None).next()
        self.assertEqual(self.coordinator.requests, [])


class Leases(ClientCase):
    def test_a_lease_with_a_wrong_field_is_never_used_and_the_next_one_is(self) -> None:
        wrong: List[Tuple[str, Dict[str, Any]]] = [
            ("echo the nonce", {"nonce": "nonce-of-another"}),
            ("another namespace", {"namespace": "other"}),
            ("names no store", {"storeId": 7}),
            ("names no store", {"storeId": "store-1\n"}),
            ("names no store", {"storeId": "s" * 100}),
            ("has no lease proof", {"proof": "short"}),
            ("its version is 8", {"version": 8}),
            ("its version is a value of type bool", {"version": True}),
            ("its version is a value of type float", {"version": 0.0}),
            ("its runCount is 0", {"runCount": 0}),
            ("its runCount is 2", {"runCount": 2}),
            ("its firstRun is 1073741824", {"firstRun": 2**30}),
            ("its firstRun is -1", {"firstRun": -1}),
            ("its firstRun is None", {"firstRun": None}),
            ("its leasedAtMs is", {"leasedAtMs": 8.64e15 + 1}),
        ]
        for words, fields in wrong:
            with self.subTest(fields):
                client = self.client()
                self.coordinator.answers.append(with_fields(**fields))
                with self.refused("invalid_response", words):
                    client.next()
                self.assertEqual(runs_of([client.next()]), [self.coordinator.mark])
                client.close()

    def test_a_first_lease_of_run_0_is_used(self) -> None:
        self.coordinator.answers.append(with_fields(firstRun=0))
        self.assertEqual(runs_of([self.client().next()]), [0])

    def test_a_lease_of_another_store_stops_the_client_in_the_middle_of_its_run(self) -> None:
        client = self.client()
        client.next()
        self.assertEqual(client.store_id, "store-1")
        self.coordinator.store_id = "store-2"
        client.take(SEQUENCE_COUNT * 3 // 4 + 127)
        until(lambda: client._buffer._ended_by)
        calls: List[Callable[[], object]] = [client.next, lambda: client.take(1)]
        for call in calls:
            with self.refused("store_mismatch", "so far came from store store-1"):
                call()
        client.close()
        self.assertEqual(self.coordinator.reports, [])

    def test_a_pinned_store_rejects_every_other_before_the_first_number(self) -> None:
        with self.refused("store_mismatch", "expects store store-0"):
            self.client(expected_store_id="store-0").next()
        self.client(expected_store_id="store-1").next()

    def test_a_run_that_is_not_above_the_last_one_stops_the_client_and_discards_its_runs(self) -> None:
        client = self.client(spare_runs=2)
        client.take(SEQUENCE_COUNT)
        until(lambda: len(client._buffer._stock) == 2)
        self.coordinator.always = with_fields(firstRun=self.coordinator.mark - 1)
        with self.refused("run_not_increasing", "has rolled back"):
            while True:
                client.take(SEQUENCE_COUNT)
        client.close()
        self.assertNotIn("closed", [report["state"] for report in self.coordinator.reports])

    def test_the_same_run_again_stops_the_client(self) -> None:
        client = self.client()
        client.next()
        self.coordinator.always = with_fields(firstRun=1)
        with self.refused("run_not_increasing", "leased run 0/1, which is not above"):
            client.take(SEQUENCE_COUNT)

    def test_the_coordinator_stops_a_client_with_these_codes_permanently(self) -> None:
        for code in ("run_above_high_water_mark", "store_id_mismatch", "store_forked"):
            self.coordinator.answers.append(refusal(code))
            client = self.client()
            for _ in range(2):
                with self.refused(code):
                    client.next()
            count = len(self.coordinator.requests)
            client.close()
            self.assertEqual(len(self.coordinator.requests), count)


class Reports(ClientCase):
    def exhausted(self, run: int) -> Dict[str, Any]:
        nonce = next(one["nonce"] for one in self.coordinator.requests if run in self._runs_leased(one))
        return {"run": run, "nonce": nonce, "lastSequence": SEQUENCE_MAX, "state": "exhausted"}

    def _runs_leased(self, request: Dict[str, Any]) -> range:
        first = 1 + sum(one["runCount"] for one in self.coordinator.requests[: self.coordinator.requests.index(request)])
        return range(first, first + request["runCount"])

    def test_the_next_lease_request_reports_a_lease_that_is_used_up(self) -> None:
        client = self.without_prefetch()
        for _ in range(3):
            client.take(SEQUENCE_COUNT)
        client.next()
        reports = [request.get("report") for request in self.coordinator.requests]
        self.assertEqual(reports, [None, self.exhausted(1), self.exhausted(2), self.exhausted(3)])
        self.assertEqual(self.coordinator.own_reports, [])

    def test_each_attempt_has_the_report_until_one_succeeds(self) -> None:
        client = self.without_prefetch()
        client.take(SEQUENCE_COUNT)
        self.coordinator.answers.extend([refusal("store_unavailable"), refusal("overloaded")])
        client.next()
        self.assertEqual(self.coordinator.reports, [self.exhausted(1)] * 3)

    def test_a_report_is_sent_by_a_request_of_its_own_where_more_than_one_waited_for_a_lease(self) -> None:
        client = self.client(spare_runs=2, max_runs_per_lease=1)
        client.next()
        until(lambda: len(client._buffer._stock) == 2)
        self.coordinator.always = refusal("store_unavailable", 20)
        client.take(3 * SEQUENCE_COUNT - 1)
        waiting = threading.Thread(target=client.next)
        waiting.start()
        # Before that only two would wait.
        until(lambda: len(client._buffer._spent) == 3)
        # One: a second lease would take along another report.
        self.coordinator.answers.append(lambda lease, _: created(lease))
        waiting.join(60)
        until(lambda: len(self.coordinator.own_reports) == 1)
        client.close()
        runs = [report["run"] for report in self.coordinator.reports if report["state"] == "exhausted"]
        self.assertEqual(set(runs), {1, 2, 3})

    def test_close_reports_how_far_the_run_got(self) -> None:
        for count in (1, 128, 129, 1_000):
            with self.subTest(count):
                client = self.client()
                client.take(count)
                client.close()
                report = self.coordinator.own_reports[-1]
                expected = {"run": self.coordinator.mark, "lastSequence": count - 1, "state": "closed"}
                self.assertEqual({**report, **expected}, report)
                self.assertEqual(report["nonce"], self.coordinator.requests[-1]["nonce"])

    def test_close_reports_used_up_and_unused_leases_once_each(self) -> None:
        client = self.client()
        client.take(SEQUENCE_COUNT * 3 // 4 + 200)
        until(lambda: client._buffer._stock)
        client.take(SEQUENCE_COUNT // 4)
        client.close()
        self.assertEqual(self.coordinator.own_reports[1], self.exhausted(1))
        self.assertEqual(self.coordinator.own_reports[0]["run"], 2)

        other = self.client()
        other.take(SEQUENCE_COUNT * 3 // 4 + 200)
        until(lambda: other._buffer._stock)
        other.close()
        states = [(report["lastSequence"], report["state"]) for report in self.coordinator.own_reports[2:]]
        self.assertEqual(states, [(SEQUENCE_COUNT * 3 // 4 + 199, "closed"), (None, "closed")])

    def test_close_reports_nothing_for_a_client_that_made_no_number(self) -> None:
        self.client().close()
        self.assertEqual((self.coordinator.requests, self.coordinator.reports), ([], []))

    def test_a_closed_client_makes_no_number_and_may_be_closed_twice(self) -> None:
        with self.client() as client:
            client.next()
        client.close()
        calls: List[Callable[[], object]] = [client.next, lambda: client.take(1)]
        for call in calls:
            with self.refused("client_closed", "Create a new client"):
                call()
        self.assertEqual(len(self.coordinator.own_reports), 1)

    def test_close_ends_a_waiting_call_and_reports_the_lease_in_flight_as_unused(self) -> None:
        arrived, go_on = threading.Event(), threading.Event()

        def hold(lease: Dict[str, Any], _: object) -> bytes:
            arrived.set()
            go_on.wait(60)
            return created(lease)

        self.coordinator.answers.append(hold)
        client = self.client()
        codes: List[str] = []

        def wait() -> None:
            try:
                client.next()
            except ClientError as error:
                codes.append(error.code)

        waiting = threading.Thread(target=wait)
        waiting.start()
        arrived.wait(60)
        closing = threading.Thread(target=client.close)
        closing.start()
        waiting.join(60)
        self.assertEqual(codes, ["client_closed"])
        go_on.set()
        closing.join(60)
        until(lambda: self.coordinator.own_reports)
        report = self.coordinator.own_reports[0]
        self.assertEqual((report["run"], report["lastSequence"], report["state"]), (1, None, "closed"))

    def test_close_does_not_wait_for_a_response_that_does_not_come(self) -> None:
        self.coordinator.always = lambda *_: time.sleep(60)
        client = self.client(wait_timeout_s=0.05)
        with self.refused("wait_timeout"):
            client.next()
        began = time.monotonic()
        client.close()
        self.assertLess(time.monotonic() - began, 30)

    def test_close_never_raises_where_the_coordinator_is_gone(self) -> None:
        client = self.client()
        client.next()
        self.coordinator.__exit__()
        client.close()


class Options(unittest.TestCase):
    def test_an_invalid_option_is_misuse_that_names_it(self) -> None:
        misuse: List[Tuple[Type[Exception], str, Dict[str, Any]]] = [
            (TypeError, "holder must be a string", {"holder": 7}),
            (ValueError, "holder must be", {"holder": ""}),
            (ValueError, "holder must be", {"holder": "a\x1b[2J"}),
            (ValueError, "holder must be", {"holder": "a" * 65}),
            (ValueError, "namespace must be", {"namespace": "Main"}),
            (ValueError, "namespace must be", {"namespace": "main\n"}),
            (TypeError, "namespace must be", {"namespace": None}),
            (ValueError, "a label's name", {"labels": {"Shard": "3"}}),
            (TypeError, "the label shard", {"labels": {"shard": 3}}),
            (TypeError, "labels must be names", {"labels": "shard"}),
            (ValueError, "number of labels", {"labels": {f"l{count}": "x" for count in range(9)}}),
            (ValueError, "expected_store_id", {"expected_store_id": "store 1"}),
            (TypeError, "expected_store_id", {"expected_store_id": 1}),
            (ValueError, "spare_runs", {"spare_runs": 65}),
            (TypeError, "spare_runs", {"spare_runs": 1.5}),
            (ValueError, "max_runs_per_lease", {"max_runs_per_lease": 0}),
            (ValueError, "wait_timeout_s", {"wait_timeout_s": 0}),
            (ValueError, "wait_timeout_s", {"wait_timeout_s": float("nan")}),
            (TypeError, "request_timeout_s", {"request_timeout_s": "5"}),
            (TypeError, "expected_store", {"expected_store": "x"}),
        ]
        for kind, words, options in misuse:
            with self.subTest(options), self.assertRaisesRegex(kind, words):
                given: Dict[str, Any] = {"holder": "test", **options}
                Client(**given)

    def test_a_url_that_may_hold_a_password_is_rejected_and_not_shown(self) -> None:
        for url in ("ftp://u:S3CRET@h", "http://u:1234/S3CRET@h", "http://u:S3/CRET@h", "http://h/?S3CRET", "u:S3CRET@h"):
            with self.assertRaisesRegex(ValueError, "^coordinator must be an address") as caught:
                Client(holder="x", coordinator=url)
            self.assertNotRegex(str(caught.exception), "S3|CRET")
        with self.assertRaisesRegex(ValueError, 'http://localhost:7300, not "localhost:7300"'):
            Client(holder="x", coordinator="localhost:7300")
        with self.assertRaises(TypeError):
            Client(holder="x", coordinator=7300)  # type: ignore[arg-type]

    def test_the_text_for_a_url_that_is_rejected_names_the_value_or_what_is_wrong_in_it(self) -> None:
        for url, words in [
            ("ftp://h", 'not "ftp://h"'),
            ("http:/h:7300", 'not "http:/h:7300"'),
            ("http://h:", 'not "http://h:"'),
            ("http://h:82848", "port from 1 to 65535, not 82848"),
            ("http://User@h:0", 'not a value with "@"'),
            ("http://h:0", "port from 1 to 65535, not 0"),
            ("http://h:65536", "port from 1 to 65535, not 65536"),
            ("http://h:7300\n", r'not a value with "\n"'),
            ("http://h/ä", "not a value with a character outside of ASCII"),
            ("http://h/\0", "not shown, as it may be secret"),
            ("http://a..b:7300", 'not "http://a..b:7300"'),
            (f"http://{'a' * 64}.b", 'not "http://aaa'),
            ("http://[a..b]", 'not "http://[a..b]"'),
            ("cn_S3CRET", "not shown, as it may be secret"),
        ]:
            with self.subTest(url), self.assertRaises(ValueError) as caught:
                Client(holder="x", coordinator=url)
            self.assertIn(words, str(caught.exception))
            self.assertLess(len(str(caught.exception)), 200)

    def test_the_limits_of_a_url_are_valid(self) -> None:
        for url, base in [
            ("HTTP://h:1", "http://h:1"),
            ("Https://h:65535", "https://h:65535"),
            ("http://a.b./x!\"$>A~/", 'http://a.b./x!"$>A~'),
            ("http://[::1]:7300", "http://[::1]:7300"),
        ]:
            self.assertEqual(Client(holder="x", coordinator=url)._coordinator.base, base)

    def test_an_invalid_token_is_rejected_and_not_shown(self) -> None:
        for token in ("cn_S3CRET x", "cn_S3CRET\r\nx: y", "Bearer cn_S3CRET", "cn_S3CRETü", "", "="):
            with self.assertRaisesRegex(ValueError, "^token must have") as caught:
                Client(holder="x", token=token)
            self.assertNotIn("S3CRET", str(caught.exception))
        with self.assertRaises(TypeError):
            Client(holder="x", token=7)  # type: ignore[arg-type]

    def test_the_environment_names_the_coordinator_where_no_option_does(self) -> None:
        with mock.patch.dict("os.environ", {"CALLNUMBER_COORDINATOR": "http://[::1]:7301/behind/"}):
            self.assertEqual(Client(holder="x")._coordinator.base, "http://[::1]:7301/behind")
            self.assertEqual(Client(holder="x", coordinator="https://h")._coordinator.base, "https://h")
        with mock.patch.dict("os.environ", {"CALLNUMBER_COORDINATOR": "localhost"}):
            with self.assertRaisesRegex(ValueError, "^CALLNUMBER_COORDINATOR must be an address"):
                Client(holder="x")
        with mock.patch.dict("os.environ"):
            os.environ.pop("CALLNUMBER_COORDINATOR", None)
            self.assertEqual(Client(holder="x")._coordinator.base, "http://127.0.0.1:7300")


if __name__ == "__main__":
    unittest.main()
