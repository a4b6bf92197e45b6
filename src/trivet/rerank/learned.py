"""Reranks by a learnt linear model over features of the hits that no leg computes.

A leg sees one passage and a bag of words. The features show more: who wrote a message, how much of the query each
passage contains, and which of its words are together. The last two are relative to the other hits, so they mean the
same in every collection.

Each weight says how far a feature of value 1 moves a hit, in standard deviations of the fused scores. The features are
about conversations: ``words`` and ``runs`` count by the share of the hits that are messages of a session. Messages are
short, and there the words of a query tell more than the legs know. On abstracts, articles and code the same features
lose (ADR 38).

The weights were learnt by ``benchmarks/generalisation.py``, each set judged without being fitted to; ``trivet tune
--rerank`` learns them from the judgements of a collection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import fsum, log, sqrt
from typing import Any, ClassVar, NamedTuple

from trivet.rerank.reranker import Places, Reranked, Reranker, Tools, best_first, option
from trivet.text.conversation import SESSION_KEYS, SESSION_SCOPE_KEYS, by_assistant
from trivet.types import Hit, Query

NEAR = 2  # positions from one word of the query to the next, if they are together
HEAD = 20  # first hits, whose mean the others are compared with

_SESSION = frozenset(SESSION_KEYS)


class Evidence(NamedTuple):
    """The features of one hit, each about 0 to 1; 0 if a feature does not apply."""

    assistant: float = 0.0  # written by an assistant
    words: float = 0.0  # words of the query in the hit, rare ones counting more; relative to the best hit
    runs: float = 0.0  # neighbouring words of the query that are together; minus the mean of the first hits


WORDING = ("words", "runs")
FEATURES = Evidence._fields
TOLD = 0.05  # standard deviations: smaller parts are left out of the explanation
_RANGE = {"low": -10.0, "high": 10.0}


@dataclass(frozen=True)
class Learned(Reranker):
    """Adds a weighted sum of the features of a hit to its score."""

    name: ClassVar[str] = "learned"
    sees: ClassVar[int] = 60
    retired: ClassVar[tuple[str, ...]] = ("names", "neighbour", "session", "dated", "addressed", "connected")

    assistant: float = option(-2.141, "written by an assistant", **_RANGE)
    words: float = option(2.818, "share of the query's words in the hit, rare words counting more", **_RANGE)
    runs: float = option(4.46, "neighbouring words of the query that are together in the hit", **_RANGE)

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        return self.apply(hits, query, Tools()).hits

    def apply(self, hits: Sequence[Hit], query: Query, tools: Tools) -> Reranked:
        if len(hits) < 2:
            return Reranked(list(hits))
        gate = wording_share(hits)
        wording = bool(gate and (self.words or self.runs))  # reading the passages is most of the time
        if not wording and not any(by_assistant(hit.document.meta) for hit in hits):  # most hits that are no messages
            return Reranked(best_first(self, ((hit, hit.score, "") for hit in hits)))
        unit = deviation(hits)
        weights = [getattr(self, name) for name in FEATURES]
        gates = [gate if name in WORDING else 1.0 for name in FEATURES]
        verdicts = []
        for hit, found in zip(hits, gather(hits, query, tools, wording), strict=True):
            parts = [weight * value * part for weight, value, part in zip(weights, found, gates, strict=True)]
            verdicts.append((hit, hit.score + unit * fsum(parts), _reason(parts)))
        return Reranked(best_first(self, verdicts))


def _reason(parts: Sequence[float]) -> str:
    """Name the features that moved the hit, in standard deviations; only the largest if all are small."""
    named = [(name, part) for name, part in zip(FEATURES, parts, strict=True) if part]
    if not named:
        return ""
    least = min(TOLD, max(abs(part) for _, part in named))
    return ", ".join([f"{name} {part:+.2f}" for name, part in named if abs(part) >= least])


def gather(hits: Sequence[Hit], query: Query, tools: Tools, wording: bool = True) -> list[Evidence]:
    """Return the features of these hits; without an analyser in ``tools``, words are split at white space."""
    terms = tools.terms or (lambda text: text.lower().split())
    text = query.understood.text if query.understood is not None else query.text  # without what the query excludes
    content = (query.terms or terms)(text) if wording else ()
    return evidence(hits, content, terms, tools.places, wording)


def deviation(hits: Sequence[Hit]) -> float:
    """Return the standard deviation of the scores: the unit of a weight, as scales differ by fusion."""
    mean = fsum(hit.score for hit in hits) / len(hits)
    return sqrt(fsum((hit.score - mean) ** 2 for hit in hits) / len(hits))


def wording_share(hits: Sequence[Hit]) -> float:
    """Return how far the wording counts: by the share of messages among the hits, and by that of the lexical leg.

    It is the square root of the lexical weight over the lexical and the dense weight of this query.
    """
    messages = sum(bool(session_of(hit.document.meta)) for hit in hits) / len(hits)
    if not messages:
        return 0.0
    weights = {item.leg: item.weight for hit in hits for item in hit.contributions}
    lexical, dense = weights.get("lexical", 0.0), weights.get("dense", 0.0)
    return messages * sqrt(lexical / (lexical + dense)) if lexical else 0.0


def evidence(
    hits: Sequence[Hit],
    content: Sequence[str],
    terms: Callable[[str], Sequence[str]],
    places: Callable[[Sequence[str], Collection[str]], Mapping[str, Places]] | None = None,
    wording: bool = True,
) -> list[Evidence]:
    """Return the features of each hit.

    ``content`` are the terms of the query, ``terms`` analyses a passage as the index does. ``places`` returns what
    ``terms`` would find, without analysing the text. Without ``wording``, ``words`` and ``runs`` are 0: they are the
    only ones that cost more than microseconds.
    """
    if not hits:
        return []
    words, runs = _wording(hits, content, terms, places) if wording else ([0.0] * len(hits), [0.0] * len(hits))
    assistant = [float(by_assistant(hit.document.meta)) for hit in hits]
    return [Evidence(*values) for values in zip(assistant, words, runs, strict=True)]


def _wording(
    hits: Sequence[Hit],
    content: Sequence[str],
    terms: Callable[[str], Sequence[str]],
    known: Callable[[Sequence[str], Collection[str]], Mapping[str, Places]] | None,
) -> tuple[list[float], list[float]]:
    """Return the features ``words`` and ``runs`` of each hit."""
    distinct = dict.fromkeys(content)
    found = known([hit.id for hit in hits], set(distinct)) if known is not None and distinct else {}
    pairs = list(pairwise(distinct))
    contained: list[list[str]] = []
    runs: list[float] = []
    for hit in hits:
        title, places = found[hit.id] if hit.id in found else _places(hit, distinct, terms)
        contained.append([term for term in distinct if term in places or term in title])
        together = sum(
            _together(places[one], places[other]) for one, other in pairs if one in places and other in places
        )
        runs.append(together / len(pairs) if pairs else 0.0)
    frequency = Counter(chain.from_iterable(contained))
    # as in an inverse document frequency, over these hits only: these are what the words have to tell apart
    rarity = {term: log(1.0 + (len(hits) - count + 0.5) / (count + 0.5)) for term, count in frequency.items()}
    covered = [sum(rarity[term] for term in its_terms) for its_terms in contained]
    best = max(covered)
    return [value / best if best else 0.0 for value in covered], _above_head(runs)


def _places(hit: Hit, sought: Collection[str], terms: Callable[[str], Sequence[str]]) -> Places:
    """Return which of these terms are in the title, and the positions of each in the passage."""
    places: dict[str, list[int]] = {}
    for place, term in enumerate(terms(hit.passage.text)):
        if term in sought:
            places.setdefault(term, []).append(place)
    return set(terms(hit.document.title)).intersection(sought) if hit.document.title else set(), places


def _together(one: Sequence[int], other: Sequence[int]) -> bool:
    return any(0 < right - left <= NEAR for left in one for right in other)


def _above_head(values: Sequence[float]) -> list[float]:
    """Subtract the mean of the first ``HEAD`` values."""
    mean = sum(values[:HEAD]) / len(values[:HEAD])
    return [value - mean for value in values]


def session_of(meta: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what identifies the conversation of a document by its metadata; empty if it belongs to none."""
    if _SESSION.isdisjoint(meta):
        return ()
    return tuple((key, str(meta[key])) for key in (*SESSION_KEYS, *SESSION_SCOPE_KEYS) if key in meta)
