"""Copies of a process: a child leases runs of its own and never generates a number of its parent's, and the parent notices nothing."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
import unittest
from multiprocessing.connection import Connection
from typing import Any, Callable, Dict, List
from unittest import mock

from callnumber import Client, ClientError, decode
from callnumber.buffer import LeaseBuffer
from callnumber.leasing import Forks
from callnumber.codec import SEQUENCE_COUNT
from scripted import created
from test_client import ClientCase, runs_of, until


def in_child(work: Callable[[], List[str]]) -> List[str]:
    """What `work` returns in a fork of this process."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, " ".join(work()).encode())
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}:{error}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        content = stream.read()
    os.waitpid(pid, 0)
    return content.decode().split()


def take_into(connection: Connection, client: Client) -> None:
    connection.send(client.take(5))
    client.close()


@unittest.skipUnless(hasattr(os, "fork"), "this platform has no fork")
class Copies(ClientCase):
    def test_a_child_leases_a_run_of_its_own_and_the_parent_goes_on_where_it_was(self) -> None:
        client = self.client()
        made = client.take(10)
        children = [in_child(lambda: [client.next(), *client.take(200), client.next()]) for _ in range(3)]
        made += client.take(10)
        self.assertEqual(runs_of(made), [1])
        self.assertEqual([runs_of(numbers) for numbers in children], [[2], [3], [4]])
        for numbers in children:
            self.assertEqual(len(set(numbers)), 202)
        first, *others = self.coordinator.requests
        self.assertEqual(first["holder"]["pid"], os.getpid())
        self.assertEqual(len({request["holder"]["pid"] for request in self.coordinator.requests}), 4)
        self.assertEqual({request["lastRun"] for request in others}, {None})

    def test_each_form_of_a_call_is_the_childs_own_from_its_first_number(self) -> None:
        client = self.client()
        for call in (lambda: [client.next()], lambda: client.take(3), lambda: client.take(SEQUENCE_COUNT + 1)):
            parents = client.take(3)
            self.assertEqual(set(runs_of(parents)) & set(runs_of(in_child(call))), set())

    def test_close_in_a_child_reports_the_childs_run_alone(self) -> None:
        client = self.client()
        client.next()

        def unused() -> List[str]:
            client.close()
            return []

        def used() -> List[str]:
            with client:
                return [client.next()]

        self.assertEqual(in_child(unused), [])
        self.assertEqual(self.coordinator.own_reports, [])
        in_child(used)
        self.assertEqual([report["run"] for report in self.coordinator.own_reports], [2])
        client.next()
        client.close()
        self.assertEqual([report["run"] for report in self.coordinator.own_reports], [2, 1])

    def test_a_child_keeps_the_store_and_the_last_run_of_its_parent_in_mind(self) -> None:
        client = self.client()
        client.next()
        self.coordinator.store_id = "store-2"
        self.assertIn("ClientError:the", in_child(lambda: [client.next()]))
        self.coordinator.store_id = "store-1"
        self.coordinator.mark = 0
        self.assertIn("rolled", in_child(lambda: [client.next()]))
        self.coordinator.mark = 9
        self.assertEqual(runs_of(in_child(lambda: [client.next()])), [10])

    def test_a_child_of_a_closed_client_makes_no_number(self) -> None:
        client = self.client()
        client.close()
        self.assertIn("closed.", in_child(lambda: [client.next()]))

    def test_a_client_that_was_closed_in_a_child_stays_closed_where_another_thread_made_a_buffer(self) -> None:
        client = self.client()
        client.next()
        real = LeaseBuffer.__init__

        def close_first(*arguments: Any) -> None:
            """Between the steps of one thread another one closes the client."""
            with mock.patch.object(LeaseBuffer, "__init__", real):
                closing = threading.Thread(target=client.close)
                closing.start()
                closing.join()
            real(*arguments)

        def work() -> List[str]:
            with mock.patch.object(LeaseBuffer, "__init__", close_first):
                try:
                    return [client.next()]
                except ClientError as error:
                    return [error.code]

        self.assertEqual(in_child(work), ["client_closed"])

    def test_a_child_forked_while_other_threads_wait_and_make_numbers_is_not_blocked(self) -> None:
        go_on = threading.Event()

        def held(lease: Dict[str, Any], _: object) -> bytes:
            go_on.wait(60)
            return created(lease)

        self.coordinator.answers.append(held)
        client = self.client()
        made: List[str] = []

        def work() -> None:
            for _ in range(3_000):
                made.append(client.next())

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        # The held response is that of the parent.
        until(lambda: self.coordinator.requests)
        children = in_child(lambda: client.take(3))
        go_on.set()
        for _ in range(10):
            children += in_child(lambda: [client.next(), client.next()])
            time.sleep(0.001)
        for thread in threads:
            thread.join()
        together = made + children
        self.assertEqual(len(together), 12_000 + 23)
        self.assertEqual(len(set(together)), len(together))

    def test_no_request_imports_a_module_whose_lock_a_child_could_inherit(self) -> None:
        script = f"""
import sys
from callnumber import Client
client = Client(holder="test", coordinator={self.coordinator.url!r})
before = set(sys.modules)
client.take(20_000)
client.close()
print(*(set(sys.modules) - before))
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "\n")

    def test_a_child_of_a_child_is_a_process_of_its_own(self) -> None:
        client = self.client()
        made = [client.next()]
        made += in_child(lambda: [client.next(), *in_child(lambda: [client.next()]), client.next()])
        self.assertEqual(len(set(made)), 4)
        self.assertEqual(len(runs_of(made)), 3)

    def test_a_copy_that_no_hook_noticed_is_known_by_its_pid(self) -> None:
        client = self.client()
        made = client.take(2)
        with mock.patch("callnumber.client.getpid", return_value=os.getpid() + 1), mock.patch(
            "callnumber.leasing.os.getpid", return_value=os.getpid() + 1
        ):
            made.append(client.next())
            made += client.take(2)
        self.assertEqual([decode(number).run for number in made], [1, 1, 2, 2, 2])

    def test_a_copy_that_has_the_pid_of_the_original_is_known_by_the_count_of_forks(self) -> None:
        client = self.client()
        made = client.take(2)
        with mock.patch("callnumber.leasing.Forks.count", 99):
            made += [client.next(), *client.take(2)]
        self.assertEqual([decode(number).run for number in made], [1, 1, 2, 2, 2])

    def test_a_fork_in_the_middle_of_a_call_discards_the_numbers_of_the_parent(self) -> None:
        client = self.client()
        client.next()

        def fork(_: int) -> None:
            Forks.count += 1

        with mock.patch.object(client._buffer, "request_for", fork):
            numbers = client.take(2)
        self.assertEqual(runs_of(numbers), [2])

    def test_the_processes_of_multiprocessing_have_runs_of_their_own(self) -> None:
        client = self.client()
        made = client.take(5)
        context = multiprocessing.get_context("fork")
        for _ in range(3):
            ours, theirs = context.Pipe()
            process = context.Process(target=take_into, args=(theirs, client))
            process.start()
            made += ours.recv()
            process.join()
        made += client.take(5)
        self.assertEqual(len(set(made)), 25)
        self.assertEqual(sorted(runs_of(made)), [1, 2, 3, 4])

    def test_a_client_can_not_be_sent_to_a_spawned_process(self) -> None:
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=take_into, args=(None, self.client()))
        with self.assertRaisesRegex(TypeError, "create one there"):
            process.start()

    def test_a_pool_receives_the_error_of_a_worker(self) -> None:
        self.coordinator.__exit__()
        client = self.client(wait_timeout_s=0.1)
        with multiprocessing.get_context("fork").Pool(1, initializer=_keep, initargs=(client,)) as pool:
            with self.assertRaises(ClientError) as caught:
                pool.apply(_next_of_kept)
        self.assertIn(caught.exception.code, ("coordinator_unreachable", "wait_timeout"))


_kept: List[Client] = []


def _keep(client: Client) -> None:
    _kept.append(client)


def _next_of_kept() -> str:
    return _kept[0].next()


if __name__ == "__main__":
    unittest.main()
