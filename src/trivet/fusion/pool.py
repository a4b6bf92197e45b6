"""Several rankings and what each place in them is worth: who is in the pool, and with what account?

The pool is the union of the legs. Whatever the method, a hit's account reads the same way: points (``normalised``)
times weight, times the number of legs that found it where agreement is rewarded, is the leg's ``share``; the shares sum
to the score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from math import fsum
from typing import TYPE_CHECKING, overload

from trivet.types import Candidate, Contribution, Key, Ranking


class Pool(Sequence[Candidate]):
    """Candidates best first; equal scores stay in first-seen order: the rankings as given, then by rank.

    The order is made at once, an account when somebody looks at its candidate: of two hundred, a page shows twenty.
    """

    def __init__(
        self,
        rankings: Sequence[Ranking],
        weights: Sequence[float],
        points: Sequence[Sequence[float]],
        *,
        agreement: bool = False,
    ) -> None:
        self._rankings, self._weights, self._points = rankings, weights, points
        self._found = Counter(chain.from_iterable(ranking.keys for ranking in rankings)) if agreement else None
        totals: dict[Key, float] = {}
        several: dict[Key, list[float]] = {}
        for number, (ranking, weight) in enumerate(zip(rankings, weights, strict=True)):
            for key, point in zip(ranking.keys, points[number], strict=True):
                share = self._share(key, weight, point)
                if key in totals:
                    several.setdefault(key, [totals[key]]).append(share)
                else:
                    totals[key] = share
        # rounded once, so that the order of the legs cannot decide between documents that are tied on paper
        totals.update((key, fsum(shares)) for key, shares in several.items())
        self._totals, self._keys = totals, sorted(totals, key=totals.__getitem__, reverse=True)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Candidate]:
        return map(self._made, self._keys)

    @overload
    def __getitem__(self, at: int) -> Candidate: ...
    @overload
    def __getitem__(self, at: slice) -> list[Candidate]: ...
    def __getitem__(self, at: int | slice) -> Candidate | list[Candidate]:
        return list(map(self._made, self._keys[at])) if isinstance(at, slice) else self._made(self._keys[at])

    def __eq__(self, other: object) -> bool:
        """As a list of the same candidates."""
        return list(self) == list(other) if isinstance(other, Pool | list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    def _share(self, key: Key, weight: float, point: float) -> float:
        return weight * point if self._found is None else weight * point * self._found[key]

    @cached_property
    def _places(self) -> list[dict[Key, int]]:
        return [{key: at for at, key in enumerate(ranking.keys)} for ranking in self._rankings]

    def _made(self, key: Key) -> Candidate:
        legs = zip(self._rankings, self._weights, self._points, self._places, strict=True)
        account = [
            _contribution(
                ranking.leg, at + 1, ranking.scores[at], points[at], weight, self._share(key, weight, points[at])
            )
            for ranking, weight, points, places in legs
            if (at := places.get(key, -1)) >= 0
        ]
        return _candidate(key, self._totals[key], tuple(account))


if TYPE_CHECKING:
    _contribution, _candidate = Contribution, Candidate
else:
    # A frozen dataclass pays object.__setattr__ per field: for two lists of 100 that alone is 0.2 ms, more than all the
    # rest of fusion. These fill an open twin with the same slots and close it by giving it the frozen class: a third of
    # the time, and what comes out is a Contribution (Candidate) like any other.
    class _OpenContribution:
        __slots__ = Contribution.__slots__

    class _OpenCandidate:
        __slots__ = Candidate.__slots__

    def _contribution(leg, rank, raw, normalised, weight, share):
        made = _OpenContribution()
        made.leg = leg
        made.rank = rank
        made.raw = raw
        made.normalised = normalised
        made.weight = weight
        made.share = share
        made.__class__ = Contribution
        return made

    def _candidate(key, score, contributions):
        made = _OpenCandidate()
        made.key = key
        made.score = score
        made.contributions = contributions
        made.__class__ = Candidate
        return made
