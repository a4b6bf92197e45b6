"""Searches take turns in the order in which they came, and none waits for one that does something else."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from trivet.concurrency import deadline
from trivet.concurrency.admission import Admission
from trivet.errors import DeadlineError

LONG = 60.0  # seconds: as good as for ever


@contextmanager
def started(*works: Callable[[], None]) -> Iterator[list[threading.Thread]]:
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    yield threads
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()


def until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.001)


def queue(turns: Admission, count: int, work: Callable[[int], None]) -> list[threading.Thread]:
    """Start threads that wait for their turn one behind the other."""

    def wait(number: int) -> None:
        with turns.taken():
            work(number)

    threads = []
    for number in range(count):
        threads.append(threading.Thread(target=wait, args=(number,), daemon=True))
        threads[-1].start()
        until(lambda n=number: len(turns._waiting) == n + 1)
    return threads


@pytest.mark.parametrize("places", [1, 2])
def test_so_many_run_at_once_in_the_order_in_which_they_came(places: int) -> None:
    turns, order, most, running = Admission(places, LONG), [], 0, 0
    guard, first = threading.Lock(), threading.Event()

    def work(number: int) -> None:
        nonlocal most, running
        with guard:
            order.append(number)
            running += 1
            most = max(most, running)
        time.sleep(0.002)
        with guard:
            running -= 1

    def hold() -> None:
        with turns.taken():
            first.wait(LONG)

    with started(*[hold] * places):
        until(lambda: turns._running == places)
        threads = queue(turns, 6, work)
        first.set()
        for thread in threads:
            thread.join(LONG)
    assert sorted(order) == list(range(6))
    assert most <= places
    if places == 1:
        assert order == list(range(6))
    assert turns._running == 0


def test_a_turn_within_a_turn_is_the_same_one() -> None:
    turns = Admission(1, LONG)
    with turns.taken(), deadline.limit(LONG):
        with turns.taken():
            assert turns._running == 1
        assert turns._running == 1
    assert turns._running == 0


def test_who_stands_aside_comes_back_before_those_who_wait() -> None:
    turns, order = Admission(1, LONG), []

    def work(number: int) -> None:
        if number == 0:
            until(lambda: len(turns._waiting) == 2)  # the other one, and this thread again
        order.append(number)

    with turns.taken():
        threads = queue(turns, 2, work)
        with turns.aside():
            pass
        order.append(-1)
    for thread in threads:
        thread.join(LONG)
    assert order == [0, -1, 1]


def test_without_a_turn_there_is_none_to_give_back() -> None:
    turns = Admission(1, LONG)
    with turns.aside():
        assert turns._running == 0
    assert turns._running == 0


def test_the_wait_ends_at_the_deadline_and_the_queue_goes_on() -> None:
    turns, done = Admission(1, LONG), []
    with turns.taken():

        def late() -> None:
            with pytest.raises(DeadlineError), deadline.limit(0.01), turns.taken():
                raise AssertionError("it had no turn")

        with started(late):
            pass
        assert not turns._waiting
        threads = queue(turns, 1, done.append)
    for thread in threads:
        thread.join(LONG)
    assert done == [0]


def test_a_cancelled_request_leaves_the_queue() -> None:
    turns, cancelled = Admission(1, 0.001), threading.Event()

    def work() -> None:
        with pytest.raises(DeadlineError), deadline.until(None, cancelled), turns.taken():
            cancelled.wait(LONG)
            deadline.check()

    with turns.taken(), started(work):
        cancelled.set()
    assert (turns._running, len(turns._waiting)) == (0, 0)


def test_one_that_keeps_its_turn_for_long_is_not_waited_for() -> None:
    turns, done = Admission(1, 0.001), []
    with turns.taken():  # and it waits for the others, which would wait for it
        threads = queue(turns, 1, done.append)
        until(lambda: done == [0])
        threads[0].join(LONG)
        assert turns._running == 1
    assert turns._running == 0


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_process_has_no_turns_of_its_parent() -> None:
    from trivet.concurrency.admission import SEARCHES

    with SEARCHES.taken():
        child = os.fork()
        if child == 0:
            os._exit(0 if SEARCHES._running == 0 else 1)
        assert os.waitpid(child, 0)[1] == 0
