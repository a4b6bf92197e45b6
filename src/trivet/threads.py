"""In which threads are the legs asked, and how long are they waited for?"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LegTimeout
from typing import TYPE_CHECKING

from trivet import pools
from trivet.errors import InputError, NotFoundError, StoreError
from trivet.profile import LEGS, Profile
from trivet.types import Degraded, Ranking, Stage

if TYPE_CHECKING:
    from trivet.inquiry import Answers
    from trivet.legs.question import Leg, Question

# Waking a thread and being woken by it costs a query about 1 ms. A leg that has answered quickly this many times, and
# whose index has nothing to catch up on, is asked in the caller's thread while the others work, until it is slow.
QUICK_MS, TRUSTED_AFTER = 20.0, 8
BRISK_MS = 1.0  # on average: two such legs one after the other take no longer than to hand one of them over


class Legs:
    """The threads the legs of a file run in: one pool a leg, so that an endpoint that hangs does not stop the words."""

    def __init__(self) -> None:
        self._quick = dict.fromkeys(LEGS, 0)
        self._usual = dict.fromkeys(LEGS, BRISK_MS)  # ms, a running mean
        self._pools = {leg: pools.Pool(8, f"trivet-{leg}") for leg in LEGS}

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
        futures: dict[str, Future[tuple[Ranking, float]]] = {}
        mine = {leg.name for leg in legs if self._is_mine(leg, legs[-1]) and is_current(leg.name)}
        for leg in sorted(legs, key=lambda leg: leg.name in mine):  # the others first: they work meanwhile
            ask = self.answer if leg.name in mine else self.submit
            futures[leg.name] = ask(leg, questions[leg.name], profile.depth(leg.name, profile.k))
        for leg in legs:
            future = futures[leg.name]
            allowed = profile.timeouts[leg.name]
            try:
                ranking, ms = future.result(max(0.0, started + allowed / 1000 - time.perf_counter()))
                self.remember(leg.name, ms)
                if ms > allowed:
                    raise LegTimeout
            except LegTimeout as error:
                future.cancel()
                # since Python 3.11 this is the built-in TimeoutError, which an embedder may raise itself
                own = future.done() and not future.cancelled() and future.exception() is error
                answers.degraded.append(Degraded(leg.name, str(error) if own else f"no answer within {allowed:g} ms"))
            except (InputError, NotFoundError):
                raise
            except Exception as error:
                answers.degraded.append(Degraded(leg.name, str(error) or type(error).__name__))
            else:
                answers.rankings.append(ranking)
                answers.stages.append(Stage(leg.name, ms, ", ".join((f"{len(ranking)} found", *ranking.notes))))

    def submit(self, leg: Leg, question: Question, depth: int) -> Future[tuple[Ranking, float]]:
        try:
            return self._pools[leg.name].submit(_timed, leg, question, depth)
        except RuntimeError:  # shut down between the first look at the store and here
            raise StoreError("store: it was closed while a search began; open it again with trivet.open") from None

    def answer(self, leg: Leg, question: Question, depth: int) -> Future[tuple[Ranking, float]]:
        """The same, answered in this thread before it returns."""
        future: Future[tuple[Ranking, float]] = Future()
        try:
            future.set_result(_timed(leg, question, depth))
        except Exception as error:
            future.set_exception(error)
        return future

    def _is_mine(self, leg: Leg, last: Leg) -> bool:
        """Is it better asked in the caller's thread?"""
        return self.is_quick(leg.name) and (leg is last or self._usual[leg.name] < BRISK_MS)

    def remember(self, leg: str, ms: float) -> None:
        self._quick[leg] = self._quick[leg] + 1 if ms < QUICK_MS else 0
        self._usual[leg] += (ms - self._usual[leg]) / TRUSTED_AFTER

    def is_quick(self, leg: str) -> bool:
        """Has it answered quickly for a while?"""
        return self._quick[leg] >= TRUSTED_AFTER

    def close(self) -> None:
        pools.close(self._pools.values())


def _timed(leg: Leg, question: Question, depth: int) -> tuple[Ranking, float]:
    started = time.perf_counter()
    ranking = leg.rank(question, depth)
    return ranking, (time.perf_counter() - started) * 1000
