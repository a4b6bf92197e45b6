"""Several rankings and what each place in them is worth: who is in the pool, and with what account?

The pool is the union of the legs. Whatever the method, a hit's account reads the same way: points (``normalised``)
times weight, times the number of legs that found it where agreement is rewarded, is the leg's ``share``; the shares sum
to the score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from math import fsum
from typing import overload

from trivet.twins import quick
from trivet.types import Candidate, Contribution, Key, Ranking

_candidate, _contribution = quick(Candidate), quick(Contribution)


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
            shares: Iterable[float] = (weight * point for point in points[number])
            if self._found is not None:
                shares = (self._share(key, weight, at) for key, at in zip(ranking.keys, points[number], strict=True))
            for key, share in zip(ranking.keys, shares, strict=True):
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

    def _made(self, key: Key) -> Candidate:
        legs = zip(self._rankings, self._weights, self._points, strict=True)
        account = [
            _contribution(
                ranking.leg, at + 1, ranking.scores[at], points[at], weight, self._share(key, weight, points[at])
            )
            for ranking, weight, points in legs
            if (at := ranking.places().get(key, -1)) >= 0
        ]
        return _candidate(key, self._totals[key], tuple(account))
