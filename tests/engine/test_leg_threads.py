"""A job runs once, in the thread that takes it first; the helper thread ends when it is closed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from trivet.engine.leg_threads import FAST_RUNS, HelperThread, Job, LegThreads, Timed
from trivet.types import Ranking


@pytest.fixture
def helper() -> Iterator[HelperThread]:
    made = HelperThread("a-helper")
    yield made
    made.close(5.0)


def _named(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]


def test_it_runs_once_and_every_caller_gets_the_result() -> None:
    done: list[int] = []
    job = Job(lambda: done.append(1) or len(done))
    job.run()
    job.run()
    assert (job.result(0.0), job.result(0.0), done) == (1, 1, [1])


def test_an_error_is_raised_where_the_result_is_read() -> None:
    job: Job[int] = Job(lambda: 1 // 0)
    job.run()
    with pytest.raises(ZeroDivisionError) as raised:
        job.result(0.0)
    assert job.error is raised.value


def test_a_wait_ends_after_its_timeout_and_a_cancelled_job_never_runs() -> None:
    done: list[int] = []
    job = Job(lambda: done.append(1))
    with pytest.raises(TimeoutError):
        job.result(0.01)
    job.cancel()
    job.run()
    assert done == []


def test_the_helper_has_its_own_thread(helper: HelperThread) -> None:
    for _ in range(3):
        job = Job(lambda: threading.current_thread().name)
        helper.offer(job)
        assert job.result(5.0) == "a-helper"
        assert helper._free.acquire(timeout=5.0)  # it becomes free after the result is set
        helper._free.release()
    assert len(_named("a-helper")) == 1


def test_if_the_helper_is_busy_the_caller_runs_the_job(helper: HelperThread) -> None:
    started, go_on = threading.Event(), threading.Event()
    long: Job[bool] = Job(lambda: started.set() or go_on.wait(10))
    helper.offer(long)
    assert started.wait(5.0)
    second = Job(threading.current_thread)
    helper.offer(second)
    second.run()
    assert second.result(0.0) is threading.current_thread()
    go_on.set()
    assert long.result(5.0)


def test_a_job_that_ran_is_not_run_again_by_the_helper(helper: HelperThread) -> None:
    job = Job(threading.get_ident)
    job.run()
    helper.offer(job)
    assert job.result(0.0) == threading.get_ident()


def test_a_closed_helper_takes_no_job() -> None:
    helper = HelperThread("a-helper-that-ends")
    first = Job(lambda: 1)
    helper.offer(first)
    assert first.result(5.0) == 1
    helper.close(5.0)
    assert _named("a-helper-that-ends") == []
    second = Job(lambda: 2)
    helper.offer(second)
    second.run()
    assert second.result(0.0) == 2


def test_an_unused_helper_has_no_thread() -> None:
    helper = HelperThread("a-helper-never-asked")
    helper.close(5.0)
    assert _named("a-helper-never-asked") == []


def test_a_job_may_close_its_own_helper() -> None:
    helper = HelperThread("a-helper-that-closes-itself")
    job = Job(lambda: helper.close(5.0))
    helper.offer(job)
    job.result(4.0)  # it does not wait for itself
    for thread in _named("a-helper-that-closes-itself"):
        thread.join(5.0)
    assert _named("a-helper-that-closes-itself") == []


def test_many_callers_each_get_their_own_result(helper: HelperThread) -> None:
    wrong: list[object] = []

    def caller(number: int) -> None:
        for turn in range(200):
            job = Job(lambda turn=turn: (number, turn))
            helper.offer(job)
            job.run()
            if job.result(5.0) != (number, turn):
                wrong.append((number, turn))

    threads = [threading.Thread(target=caller, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    ("slow", "runs_here"),
    [
        pytest.param([], True, id="fast every time"),
        pytest.param([60.0], True, id="another process had the core once"),
        pytest.param([60.0, 60.0], False, id="slow twice"),
        pytest.param([2_000.0], False, id="it may have hung"),
    ],
)
def test_one_run_that_was_interrupted_does_not_send_a_fast_leg_to_its_pool(slow: list[float], runs_here: bool) -> None:
    threads = LegThreads()
    leg = SimpleNamespace(name="lexical")
    for ms in [1.0] * 2 * FAST_RUNS + slow:
        threads._note(leg.name, Timed(Ranking(leg.name), ms, 1.0))
    assert threads._runs_here(leg, None) is runs_here  # type: ignore[arg-type]
    threads.close()
