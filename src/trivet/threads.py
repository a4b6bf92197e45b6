"""In which threads are the legs asked, and how long are they waited for?"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, NamedTuple

from trivet import deadline, pools
from trivet.errors import DeadlineError, InputError, NotFoundError, StoreError
from trivet.jobs import Companion, Job
from trivet.profile import LEGS, Profile
from trivet.types import Degraded, Ranking, Stage

if TYPE_CHECKING:
    from trivet.inquiry import Answers
    from trivet.legs.question import Leg, Question

# Waking a pool's thread and being woken by it costs a query up to 1 ms. A leg that has answered quickly this many
# times, and whose index has nothing to catch up on, is asked in the caller's thread while the others work, until it is
# slow; and of two such, one by a companion meanwhile.
QUICK_MS, TRUSTED_AFTER = 20.0, 8
BRISK_MS = 5.0  # on average: longer ones go to their pool, where each is waited for no longer than it is allowed
WORTH_MS = 0.35  # of work, on average: two legs of less are done sooner one after the other


class Timed(NamedTuple):
    ranking: Ranking
    ms: float
    worked_ms: float  # without what it waited: two threads that take turns both take long, and neither works more


Answer = Job[Timed]


class Legs:
    """The threads the legs of a file run in: one pool a leg, so that an endpoint that hangs does not stop the words."""

    def __init__(self) -> None:
        self._quick = dict.fromkeys(LEGS, 0)
        self._usual, self._work = dict.fromkeys(LEGS, BRISK_MS), dict.fromkeys(LEGS, 0.0)  # ms, running means
        self._pools = {leg: pools.Pool(8, f"trivet-{leg}") for leg in LEGS}
        self._companion = Companion("trivet-companion")
        self._asking: set[int] = set()  # threads that wait for legs just now

    def wave(
        self,
        legs: Sequence[Leg],
        questions: Mapping[str, Question],
        profile: Profile,
        is_current: Callable[[str], bool],
        answers: Answers,
    ) -> None:
        """Ask these legs at the same time; one that fails or is late is left out and named."""
        started = time.perf_counter()
        asked = {
            leg.name: Job(
                deadline.carried(partial(self.rank, leg, questions[leg.name], profile.depth(leg.name, profile.k)))
            )
            for leg in legs
        }
        mine = [leg.name for leg in legs if self._is_mine(leg, legs[-1]) and is_current(leg.name)]
        for leg in asked:
            if leg not in mine:  # these first: they work meanwhile
                self.submit(leg, asked[leg])
        thread = get_ident()
        self._asking.add(thread)
        try:
            if len(mine) > 1 and self._is_worth_it(mine):
                self._companion.lend(asked[mine[0]])  # the words: meaning lets go of the interpreter sooner
            for leg in reversed(mine):
                self.answer(leg, asked[leg])
        finally:
            self._asking.discard(thread)
        for leg, job in asked.items():
            allowed = profile.timeouts[leg]
            try:
                done = job.result(deadline.within(max(0.0, started + allowed / 1000 - time.perf_counter())))
                ranking, ms, _ = done
                self.remember(leg, done)
                if ms > allowed:
                    raise TimeoutError
            except TimeoutError as error:
                job.cancel()
                deadline.check()
                own = job.error is error  # an embedder's own
                answers.degraded.append(Degraded(leg, str(error) if own else f"no answer within {allowed:g} ms"))
            except (InputError, NotFoundError, DeadlineError):
                raise
            except Exception as error:
                answers.degraded.append(Degraded(leg, str(error) or type(error).__name__))
            else:
                answers.rankings.append(ranking)
                answers.stages.append(Stage(leg, ms, ", ".join((f"{len(ranking)} found", *ranking.notes))))

    def rank(self, leg: Leg, question: Question, depth: int) -> Timed:
        started, worked = time.perf_counter(), time.thread_time()
        ranking = leg.rank(question, depth)
        return Timed(ranking, (time.perf_counter() - started) * 1000, (time.thread_time() - worked) * 1000)

    def submit(self, leg: str, job: Answer) -> None:
        """In a thread of the leg's own."""
        try:
            self._pools[leg].submit(job.run)
        except RuntimeError:  # shut down between the first look at the store and here
            raise StoreError("store: it was closed while a search began; open it again with trivet.open") from None

    def answer(self, leg: str, job: Answer) -> None:
        """In this thread, unless the companion is at it."""
        job.run()

    def _is_worth_it(self, legs: Sequence[str]) -> bool:
        """Would they gain by a second thread? Not where others ask too."""
        return len(self._asking) == 1 and min(self._work[leg] for leg in legs) >= WORTH_MS

    def _is_mine(self, leg: Leg, last: Leg) -> bool:
        """Is it better asked in the caller's thread?"""
        return self.is_quick(leg.name) and (leg is last or self._usual[leg.name] < BRISK_MS)

    def remember(self, leg: str, done: Timed) -> None:
        self._quick[leg] = self._quick[leg] + 1 if done.ms < QUICK_MS else 0
        self._usual[leg] += (done.ms - self._usual[leg]) / TRUSTED_AFTER
        self._work[leg] += (done.worked_ms - self._work[leg]) / TRUSTED_AFTER

    def is_quick(self, leg: str) -> bool:
        """Has it answered quickly for a while?"""
        return self._quick[leg] >= TRUSTED_AFTER

    def close(self) -> None:
        self._companion.close(pools.PATIENCE)
        pools.close(self._pools.values())
