"""Context: the best candidates pass a part of their scores on to their neighbours.

    score'(d) = score(d) + weight * max(score(before(d)), score(after(d)))

``before`` and ``after`` are the turns next to a document in its session. Of the two, the better one counts: with their
sum, turns between two middling ones pass the one that matches. A document that no leg found has the score 0, as in
every fusion: so it adds nothing, and neither does a neighbour that does not exist or has a score below 0. Such a
document becomes a candidate when a neighbour adds to it: the answer to a question that matches.

Both directions have one weight. So two neighbours never change places because of what they add to each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from trivet.fusion.pool import Candidates
from trivet.types import Candidate, Contribution, Key

Adjacent = Mapping[int, tuple[int | None, int | None]]  # document → the one before and the one after it

SOURCES = 60  # best candidates that pass a part on: what the rerankers of the default see


class Share(NamedTuple):
    """What one neighbour adds to the score of a document."""

    neighbour: Key
    amount: float


def shares(scores: Mapping[Key, float], adjacent: Adjacent, weight: float) -> dict[Key, Share]:
    """Map documents to what their better neighbour adds; ``scores`` are those of the pool, best first."""
    found: dict[Key, Share] = {}
    for key, score in islice(scores.items(), SOURCES):
        for neighbour in adjacent.get(int(key), ()) if score > 0.0 else ():
            if neighbour is not None:
                found.setdefault(neighbour, Share(key, weight * score))  # the first one to come is the better one
    return found


class Lifted(Candidates):
    """The candidates of a pool with their shares added, best first. Equal scores stay in the order of the pool."""

    def __init__(self, pool: Sequence[Candidate], scores: Mapping[Key, float], added: Mapping[Key, Share]) -> None:
        """``scores`` are those of the pool, in its order."""
        super().__init__({**scores, **{key: scores.get(key, 0.0) + share.amount for key, share in added.items()}})
        self._pool, self._places = pool, {key: place for place, key in enumerate(scores)}

    def contributions(self, key: Key) -> tuple[Contribution, ...]:
        place = self._places.get(key)
        return () if place is None else self._pool[place].contributions
