"""Seen side by side, which hit answers best?

A line through what ``evidence.py`` finds: each weight says how far a full measure of that evidence moves a hit, in
deviations of the fused scores. What concerns the question's wording counts by the share that words have in the fusion:
where meaning alone is asked it says nothing, and where a question is better answered by meaning it says little.

The weights were learnt by ``benchmarks/ranking.py``, which names the splits and tells what they are worth on sets they
were not learnt from; ``tune`` learns them from one's own judgements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import ClassVar

from trivet.rerank.evidence import Evidence, evidence
from trivet.rerank.reranker import Reranked, Reranker, Tools, best_first, option
from trivet.types import Hit, Query

WORDING = ("words", "runs", "names")
FEATURES = Evidence._fields
TOLD = 0.05  # a part of a score that is worth a word in the explanation
_RANGE = {"low": -10.0, "high": 10.0}


@dataclass(frozen=True)
class Learned(Reranker):
    name: ClassVar[str] = "learned"
    sees: ClassVar[int] = 60

    words: float = option(1.041, "how much of the question it holds", **_RANGE)
    runs: float = option(2.219, "words of the question that stand together", **_RANGE)
    names: float = option(1.079, "names of the question", **_RANGE)
    neighbour: float = option(0.0, "the turn before or after is a good hit", **_RANGE)
    session: float = option(0.505, "others of its session are good hits", **_RANGE)
    dated: float = option(0.628, "the question asks when, and it speaks of a time", **_RANGE)
    assistant: float = option(-2.344, "said by an assistant", **_RANGE)
    addressed: float = option(0.97, "said by an assistant, and the question asks what was said to “you”", **_RANGE)
    connected: float = option(0.876, "a way leads to it from what others found", **_RANGE)

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        return self.apply(hits, query, Tools()).hits

    def apply(self, hits: Sequence[Hit], query: Query, tools: Tools) -> Reranked:
        if len(hits) < 2:
            return Reranked(list(hits))
        unit, gate = deviation(hits), wording_share(hits)
        weights = [getattr(self, name) for name in FEATURES]
        gates = [gate if name in WORDING else 1.0 for name in FEATURES]
        verdicts = []
        for hit, found in zip(hits, gather(hits, query, tools), strict=True):
            parts = [weight * value * part for weight, value, part in zip(weights, found, gates, strict=True)]
            verdicts.append((hit, hit.score + unit * fsum(parts), _told(parts)))
        return Reranked(best_first(self, verdicts))


def _told(parts: Sequence[float]) -> str:
    """What moved it, in deviations; where all is little, the most of it."""
    said = [(name, part) for name, part in zip(FEATURES, parts, strict=True) if part]
    if not said:
        return ""
    least = min(TOLD, max(abs(part) for _, part in said))
    return ", ".join([f"{name} {part:+.2f}" for name, part in said if abs(part) >= least])


def gather(hits: Sequence[Hit], query: Query, tools: Tools) -> list[Evidence]:
    """The evidence for these hits with what a search lends; without an analyser, words are what blanks separate."""
    read = tools.terms or (lambda text: text.lower().split())
    # what is not wanted is not looked for
    asked = query.understood.text if query.understood is not None else query.text
    content = query.terms(asked) if query.terms is not None else read(asked)
    return evidence(hits, asked, content, read, tools.order, tools.places)


def deviation(hits: Sequence[Hit]) -> float:
    """Of the fused scores: what a weight is measured in, since every fusion has its own scale."""
    mean = fsum(hit.score for hit in hits) / len(hits)
    return sqrt(fsum((hit.score - mean) ** 2 for hit in hits) / len(hits))


def wording_share(hits: Sequence[Hit]) -> float:
    """The square root of the share that words have beside meaning in this question's fusion."""
    weights = {item.leg: item.weight for hit in hits for item in hit.contributions}
    words, meaning = weights.get("lexical", 0.0), weights.get("dense", 0.0)
    return sqrt(words / (words + meaning)) if words else 0.0
