"""The pool of candidates: the union of several rankings, ordered by the points that each place in them is worth.

Every fusion explains a candidate in the same way. The share of a leg is the points (``normalised``) times the weight,
times the number of legs that found the document where agreement is rewarded. The shares sum to the score.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from math import fsum
from typing import overload

from trivet.frozen import quick, quick_deferred
from trivet.types import Candidate, Contribution, Key, Ranking

_candidate, _contribution = quick_deferred(Candidate), quick(Contribution)


class Candidates(Sequence[Candidate]):
    """Candidates by their scores, best first. Equal scores stay in the order of the scores as given.

    The order is computed at once, a candidate when it is read, and its contributions when these are read: of two
    hundred candidates, a page shows twenty.
    """

    def __init__(self, totals: Mapping[Key, float]) -> None:
        self._totals, self.keys = totals, sorted(totals, key=totals.__getitem__, reverse=True)

    @abstractmethod
    def contributions(self, key: Key) -> tuple[Contribution, ...]:
        """Return what each leg contributed to a candidate."""

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Candidate]:
        return map(self._made, self.keys)

    @overload
    def __getitem__(self, at: int) -> Candidate: ...
    @overload
    def __getitem__(self, at: slice) -> list[Candidate]: ...
    def __getitem__(self, at: int | slice) -> Candidate | list[Candidate]:
        return list(map(self._made, self.keys[at])) if isinstance(at, slice) else self._made(self.keys[at])

    def __eq__(self, other: object) -> bool:
        """Compare as a list of candidates."""
        return list(self) == list(other) if isinstance(other, Candidates | list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    def scores(self) -> dict[Key, float]:
        """Return the scores by key, best first, without making the candidates."""
        return {key: self._totals[key] for key in self.keys}

    def _made(self, key: Key) -> Candidate:
        return _candidate(key, self._totals[key], self._deferred)

    def _deferred(self, candidate: Candidate) -> tuple[tuple[Contribution, ...]]:
        return (self.contributions(candidate.key),)


class FusedPool(Candidates):
    """Fused rankings. Equal scores stay in the order of the rankings as given, then of the ranks."""

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
            own = dict(zip(ranking.keys, shares, strict=True))
            for key in totals.keys() & own.keys():
                several.setdefault(key, [totals[key]]).append(own[key])
            totals |= own
        # fsum rounds once, so documents with equal sums stay equal whatever the order of the legs
        totals.update((key, fsum(shares)) for key, shares in several.items())
        super().__init__(totals)

    def _share(self, key: Key, weight: float, point: float) -> float:
        return weight * point if self._found is None else weight * point * self._found[key]

    def contributions(self, key: Key) -> tuple[Contribution, ...]:
        found = []
        for leg, places, scores, points, weight in self._columns:
            at = places.get(key)
            if at is not None:
                found.append(
                    _contribution(leg, at + 1, scores[at], points[at], weight, self._share(key, weight, points[at]))
                )
        return tuple(found)

    @cached_property
    def _columns(self) -> list[tuple[str, Mapping[Key, int], Sequence[float], Sequence[float], float]]:
        """What each leg contributes: its name, the place of each key, its scores, their points, and its weight."""
        legs = zip(self._rankings, self._points, self._weights, strict=True)
        return [(ranking.leg, ranking.places(), ranking.scores, points, weight) for ranking, points, weight in legs]


def scores_of(pool: Sequence[Candidate]) -> dict[Key, float]:
    """Return the scores of a pool by key, in its order."""
    return pool.scores() if isinstance(pool, Candidates) else {candidate.key: candidate.score for candidate in pool}


def keys_of(pool: Sequence[Candidate]) -> list[Key]:
    """Return the keys of a pool in its order, without making its candidates."""
    return pool.keys if isinstance(pool, Candidates) else [candidate.key for candidate in pool]
