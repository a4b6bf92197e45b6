"""The threads that legs run in, and their time limits.

A thread pool costs as much per call as a leg of half a millisecond would save by running there (docs/adr/0009,
docs/adr/0027). So a job runs once, in the thread that takes it first: the helper, or the caller when it is done with
its own work. If the helper is busy, the caller runs every job itself.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from trivet.concurrency import deadline, threads
from trivet.concurrency.admission import SEARCHES
from trivet.engine.request import Retrieved, Setup
from trivet.errors import DeadlineError, IndexNotReadyError, InputError, NotFoundError, StoreError
from trivet.types import Degraded, Ranking, Stage

if TYPE_CHECKING:
    from trivet.legs.leg import Leg, LegQuery
    from trivet.stores.contract import State

T = TypeVar("T")

# Waking a thread of a pool, and being woken by it, costs a search up to 1 ms. A leg that took less than ``FAST_MS`` in
# each of its last ``FAST_RUNS`` runs, and whose index is up to date, runs in the caller's thread; of two such legs, the
# helper thread runs one. After twice as many, a run of up to ``SLOW_MS`` is forgiven once: the core was taken.
FAST_MS, FAST_RUNS, SLOW_MS = 20.0, 8, 100.0
POOL_MS = 5.0  # mean time above which a leg goes to its pool, where its time limit can be enforced
HELPER_MS = 0.35  # mean CPU time below which the helper thread saves nothing


class Job(Generic[T]):
    """A function that is called once, by the first thread that runs the job."""

    __slots__ = ("_done", "_result", "_taken", "_work", "error")

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._taken, self._done = threading.Lock(), threading.Lock()
        self._done.acquire()
        self._result: list[T] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        """Call the function, unless another thread does or did."""
        if not self._taken.acquire(blocking=False):
            return
        try:
            self._result.append(self._work())
        except BaseException as error:  # raised again by ``result``
            self.error = error
        finally:
            self._done.release()

    def cancel(self) -> None:
        """Prevent a job that has not started from starting."""
        self._taken.acquire(blocking=False)

    def result(self, timeout: float) -> T:
        """Return what the function returned; ``TimeoutError`` where it is not done within ``timeout`` seconds."""
        if not self._done.acquire(timeout=timeout):
            raise TimeoutError
        self._done.release()
        if self.error is not None:
            raise self.error
        return self._result[0]


class HelperThread:
    """One thread that runs jobs offered to it. It starts with the first job and ends with ``close``."""

    def __init__(self, name: str) -> None:
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._free, self._offered = threading.Lock(), threading.Lock()
        self._offered.acquire()
        self._job: Job[object] | None = None
        self._closed = False

    def offer(self, job: Job[T]) -> None:
        """Start the job in the helper thread, unless the thread is busy."""
        if not self._free.acquire(blocking=False):
            return
        if self._thread.ident is None:
            self._thread.start()
        self._job = job  # type: ignore[assignment]  # only the caller reads the job's result
        self._offered.release()

    def close(self, timeout: float) -> None:
        """Take no more jobs, and wait up to ``timeout`` seconds for the running one and for the thread."""
        self._closed = True
        if self._thread is threading.current_thread():  # a job may hold the last reference to its engine, and close it
            return
        if self._free.acquire(timeout=timeout) and self._thread.ident is not None:
            self._offered.release()
            self._thread.join(timeout)

    def _work(self) -> None:
        while True:
            self._offered.acquire()
            job, self._job = self._job, None
            if job is None:
                return
            job.run()
            del job  # an idle thread keeps no result alive
            self._free.release()
            if self._closed:
                return


class Timed(NamedTuple):
    ranking: Ranking
    ms: float
    worked_ms: float  # CPU time: two threads that take turns both take long, and neither works more


Answer = Job[Timed]


class LegThreads:
    """The threads that the legs of a store run in: one pool for each leg, so that one that hangs stops no other."""

    def __init__(self) -> None:
        self._quick: dict[str, int] = defaultdict(int)
        self._usual: dict[str, float] = defaultdict(lambda: POOL_MS)  # running mean, ms
        self._work: dict[str, float] = defaultdict(float)  # running mean, ms
        self._guard, self._closed = threading.Lock(), False
        self._pools: dict[str, threads.ThreadPool] = {}
        self._helper = HelperThread("trivet-helper")
        self._searching: set[int] = set()  # threads that wait for legs now

    def run(self, legs: Sequence[Leg], queries: Mapping[str, LegQuery], setup: Setup, state: State) -> Retrieved:
        """Run these legs at the same time; one that fails or is late is left out and named as degraded."""
        started = time.perf_counter()
        jobs = {
            leg.name: Job(deadline.carried(partial(self.rank, leg, queries[leg.name], setup.depths[leg.name])))
            for leg in legs
        }
        here = [leg.name for leg in legs if self._runs_here(leg, legs[-1]) and leg.is_current(state)]
        for name in jobs:
            if name not in here:  # first, because they work meanwhile
                self.submit(name, jobs[name])
        self._run_here(here, jobs)
        rankings: list[Ranking] = []
        stages: list[Stage] = []
        degraded: list[Degraded] = []
        for name, job in jobs.items():
            limit = setup.profile.timeouts[name]
            try:
                with contextlib.nullcontext() if name in here else SEARCHES.aside():
                    done = job.result(deadline.within(max(0.0, started + limit / 1000 - time.perf_counter())))
                self._note(name, done)
                if done.ms > limit:
                    raise TimeoutError
            except TimeoutError as error:
                job.cancel()
                deadline.check()
                raised = job.error is error  # by the leg itself: an embedder's time limit
                degraded.append(Degraded(name, str(error) if raised else f"no answer within {limit:g} ms"))
            except (InputError, NotFoundError, DeadlineError):
                raise
            except Exception as error:
                reason, pending = str(error) or type(error).__name__, isinstance(error, IndexNotReadyError)
                degraded.append(Degraded(name, reason, pending))
            else:
                rankings.append(done.ranking)
                notes = (f"{len(done.ranking)} found", *done.ranking.notes)
                stages.append(Stage(name, done.ms, ", ".join(notes)))
        return Retrieved(tuple(rankings), queries, tuple(stages), tuple(degraded))

    def _run_here(self, names: Sequence[str], jobs: Mapping[str, Answer]) -> None:
        """Run legs in the caller's thread, the first of several by the helper thread meanwhile."""
        thread = threading.get_ident()
        self._searching.add(thread)
        try:
            if len(names) > 1 and self._is_worth_it(names):
                self._helper.offer(jobs[names[0]])  # lexical: the dense leg lets go of the interpreter sooner
            for name in reversed(names):
                self.answer(name, jobs[name])
        finally:
            self._searching.discard(thread)

    def rank(self, leg: Leg, query: LegQuery, depth: int) -> Timed:
        started, worked = time.perf_counter(), time.thread_time()
        ranking = leg.rank(query, depth)
        return Timed(ranking, (time.perf_counter() - started) * 1000, (time.thread_time() - worked) * 1000)

    def submit(self, leg: str, job: Answer) -> None:
        """Run the job in the pool of the leg."""
        try:
            self._pool(leg).submit(job.run)
        except RuntimeError:  # closed since the search began
            raise StoreError("store: it was closed while a search began; open it again") from None

    def _pool(self, leg: str) -> threads.ThreadPool:
        with self._guard:
            if self._closed:
                raise RuntimeError("closed")
            if leg not in self._pools:
                self._pools[leg] = threads.ThreadPool(8, f"trivet-{leg}")
            return self._pools[leg]

    def answer(self, leg: str, job: Answer) -> None:
        """Run the job in this thread, unless the helper thread runs it."""
        job.run()

    def _is_worth_it(self, legs: Sequence[str]) -> bool:
        """Tell whether a second thread helps; it does not while other searches run."""
        return len(self._searching) == 1 and min(self._work[leg] for leg in legs) >= HELPER_MS

    def _runs_here(self, leg: Leg, last: Leg) -> bool:
        """Tell whether the leg should run in the caller's thread: it has been fast for a while.

        The last leg may be slower than ``POOL_MS``, because no other leg of the caller's thread waits for it.
        """
        trusted = self._quick[leg.name] >= FAST_RUNS
        return trusted and (leg is last or self._usual[leg.name] < POOL_MS)

    def _note(self, leg: str, done: Timed) -> None:
        if done.ms < FAST_MS:
            self._quick[leg] = min(self._quick[leg] + 1, 2 * FAST_RUNS)
        else:
            self._quick[leg] = self._quick[leg] // 2 if done.ms < SLOW_MS else 0
        self._usual[leg] += (min(done.ms, FAST_MS) - self._usual[leg]) / FAST_RUNS
        self._work[leg] += (done.worked_ms - self._work[leg]) / FAST_RUNS

    def close(self) -> None:
        self._helper.close(threads.CLOSE_TIMEOUT)
        with self._guard:
            self._closed = True
        threads.close(self._pools.values())
