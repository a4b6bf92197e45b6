"""Relevance: the probability that a document answers the query, computed after the last stage of a search.

A score orders one list and cannot be compared with the scores of another query. Relevance can: it is a logistic
function of the query and the document, and not of what else was found. Where the reader has read the document its logit
decides; else two absolute strengths do, the BM25 score over the highest that the query allows and the cosine above that
of unrelated texts. Beside the logit the strengths would tell little, and would not mean the same in another kind of
collection (ADR 41). A path in the graph does not count: it leads to what is needed for an answer, and as often to
anything else.

Down the list relevance never increases: hits that would break this share their mean. ``benchmarks/relevance.py`` fits
the coefficients and measures them on sets that were left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import exp
from operator import mul
from typing import NamedTuple

from trivet.types import Key, Ranking

WORDS_OF, MEANING_OF = ("lexical", "trigram"), ("dense",)  # the legs that compare words, and meaning
#: Below this relevance nothing is known about a query: what MCP and chat keep from a model.
KNOWN = 0.03
LOGIT = 4.0  # reader's logits that make one unit of its feature
ANSWERS = 4.0  # logit at which a passage reads like an answer


class Match(NamedTuple):
    """How well the legs match one document, each from 0 to 1; None where no such leg took part in the search."""

    words: float | None = None  # strength of the best leg that compares words
    meaning: float | None = None  # strength of the dense leg

    @property
    def strengths(self) -> list[float]:
        """The strengths of the legs that took part, the higher one first."""
        return sorted((value for value in self if value is not None), reverse=True)


#: Coefficients of ``features``: of a document that was read, and of one that was not and was matched by words and
#: meaning, by words alone, or by meaning alone.
READ = (-1.78, 0.9, 0.47)
BOTH = (-5.52, 6.16, 2.76)
WORDS = (-3.78, 6.19)
MEANING = (-5.32, 7.16)


class Matches:
    """How well the legs match each document of a search.

    A leg without a weight is ignored, and so is one that had nothing to search for and says so in its notes. Legs that
    compare neither words nor meaning, such as the graph or one that ranks by popularity, match nothing themselves.
    """

    def __init__(self, rankings: Sequence[Ranking], weights: Mapping[str, float]) -> None:
        weighted = [item for item in rankings if weights.get(item.leg, 0.0) > 0 and (len(item) or not item.notes)]
        self._words, self._meaning = (
            _strengths([leg for leg in weighted if leg.leg in names]) for names in (WORDS_OF, MEANING_OF)
        )

    def __call__(self, key: Key) -> Match:
        """Return how well the legs match a document."""
        return Match(*(None if known is None else known.get(key, 0.0) for known in (self._words, self._meaning)))

    def probabilities(self, keys: Collection[Key]) -> list[float]:
        """Return the probability of each of these documents, none of which was read, as ``probability`` does.

        They are computed together, because a search needs them of every candidate.
        """
        words, meaning = ([known.get(key, 0.0) for key in keys] for known in (self._words or {}, self._meaning or {}))
        # a leg that took no part has no coefficient, and the strength 0 for every document
        took_part = Match(*(None if known is None else 0.0 for known in (self._words, self._meaning)))
        base, by_higher, by_lower = (*coefficients(took_part), 0.0, 0.0, 0.0)[:3]
        return [
            1.0 / (1.0 + exp(-(base + by_higher * higher + by_lower * lower))) if higher else 0.0
            for higher, lower in zip(map(max, words, meaning), map(min, words, meaning), strict=True)
        ]


def _strengths(legs: Sequence[Ranking]) -> dict[Key, float] | None:
    """Map the documents that these legs found to the strength of the best leg; None where no leg took part."""
    if not legs:
        return None
    found = dict(zip(legs[0].keys, legs[0].strengths(), strict=True))
    for leg in legs[1:]:
        for key, value in zip(leg.keys, leg.strengths(), strict=True):
            found[key] = max(found.get(key, value), value)
    return found


def features(match: Match, read: float | None = None) -> tuple[float, ...]:
    """Return what relevance is computed from; ``read`` is the reader's logit."""
    if read is None:
        return (1.0, *match.strengths)
    return 1.0, read / LOGIT, 1.0 / (1.0 + exp(ANSWERS - read))


def coefficients(match: Match, read: float | None = None) -> Sequence[float]:
    """Return the coefficients for these features; none where no leg took part that matches documents."""
    if read is not None:
        return READ
    if match.words is None or match.meaning is None:
        return WORDS if match.words is not None else MEANING if match.meaning is not None else ()
    return BOTH


def probability(match: Match, read: float | None = None) -> float:
    """Return the probability that the document answers the query; 0 if no leg matched it and it was not read."""
    values = features(match, read)
    if read is None and not any(values[1:]):
        return 0.0
    return 1.0 / (1.0 + exp(-sum(map(mul, coefficients(match, read), values))))


def never_increasing(values: Iterable[float]) -> list[float]:
    """Return the values made to decrease: where they rise, their mean (isotonic regression, least squares).

    Of all such lists this one is nearest to the values, and its mean is theirs, so calibration is kept.
    """
    blocks: list[tuple[float, int]] = []  # the mean of some values in a row, and their number
    for value in values:
        mean, count = value, 1
        while blocks and blocks[-1][0] < mean:
            before, number = blocks.pop()
            mean, count = (before * number + mean * count) / (number + count), number + count
        blocks.append((mean, count))
    return [mean for mean, count in blocks for _ in range(count)]
