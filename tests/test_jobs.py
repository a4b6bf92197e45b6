"""Is a job done once, by whoever takes it first, and does its companion end?"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from trivet.jobs import Companion, Job


@pytest.fixture
def companion() -> Iterator[Companion]:
    made = Companion("a-companion")
    yield made
    made.close(5.0)


def _named(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]


def test_it_is_done_once_and_told_to_everybody() -> None:
    done: list[int] = []
    job = Job(lambda: done.append(1) or len(done))
    job.run()
    job.run()
    assert (job.result(0.0), job.result(0.0), done) == (1, 1, [1])


def test_an_error_is_who_asks_s_own() -> None:
    job: Job[int] = Job(lambda: 1 // 0)
    job.run()
    with pytest.raises(ZeroDivisionError) as told:
        job.result(0.0)
    assert job.error is told.value


def test_nobody_waits_longer_than_he_says_and_what_is_given_up_is_not_begun() -> None:
    done: list[int] = []
    job = Job(lambda: done.append(1))
    with pytest.raises(TimeoutError):
        job.result(0.01)
    job.cancel()
    job.run()
    assert done == []


def test_the_companion_works_in_a_thread_of_its_own(companion: Companion) -> None:
    for _ in range(3):
        job = Job(lambda: threading.current_thread().name)
        companion.lend(job)
        assert job.result(5.0) == "a-companion"
        assert companion._free.acquire(timeout=5.0)  # it says that it is free after it has told
        companion._free.release()
    assert len(_named("a-companion")) == 1


def test_who_finds_it_busy_does_the_work_himself(companion: Companion) -> None:
    begun, go_on = threading.Event(), threading.Event()
    long: Job[bool] = Job(lambda: begun.set() or go_on.wait(10))
    companion.lend(long)
    assert begun.wait(5.0)
    second = Job(threading.current_thread)
    companion.lend(second)
    second.run()
    assert second.result(0.0) is threading.current_thread()
    go_on.set()
    assert long.result(5.0)


def test_what_it_has_not_begun_is_the_lender_s(companion: Companion) -> None:
    job = Job(threading.get_ident)
    job.run()
    companion.lend(job)
    assert job.result(0.0) == threading.get_ident()


def test_it_ends_and_is_asked_no_more() -> None:
    companion = Companion("a-companion-that-ends")
    first = Job(lambda: 1)
    companion.lend(first)
    assert first.result(5.0) == 1
    companion.close(5.0)
    assert _named("a-companion-that-ends") == []
    second = Job(lambda: 2)
    companion.lend(second)
    second.run()
    assert second.result(0.0) == 2


def test_one_that_was_never_asked_has_no_thread() -> None:
    companion = Companion("a-companion-never-asked")
    companion.close(5.0)
    assert _named("a-companion-never-asked") == []


def test_it_may_be_closed_by_what_it_does_itself() -> None:
    companion = Companion("a-companion-that-closes-itself")
    job = Job(lambda: companion.close(5.0))
    companion.lend(job)
    job.result(4.0)  # it does not wait for itself
    for thread in _named("a-companion-that-closes-itself"):
        thread.join(5.0)
    assert _named("a-companion-that-closes-itself") == []


def test_many_lenders_each_get_their_own(companion: Companion) -> None:
    wrong: list[object] = []

    def lender(number: int) -> None:
        for turn in range(200):
            job = Job(lambda turn=turn: (number, turn))
            companion.lend(job)
            job.run()
            if job.result(5.0) != (number, turn):
                wrong.append((number, turn))

    threads = [threading.Thread(target=lender, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
