"""How is a passage found before the index on disk has it?

A tantivy commit costs about 80 ms of fsync, so the newest few hundred passages live here, in memory, and are scored
with the same BM25 over the statistics of both parts. Small by construction: past ``words.TAIL_LIMIT`` passages the
index takes them over.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

K1, B = 1.2, 0.75  # tantivy's constants: both parts must score alike

Found = tuple[float, int, int]  # score, pid, did


@dataclass(slots=True)
class Tail:
    """Passages and removals after the index's checkpoint."""

    dids: dict[int, int] = field(default_factory=dict)
    terms: dict[int, list[str]] = field(default_factory=dict)
    postings: dict[str, dict[int, int]] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)  # passages of the index on disk that are gone
    tokens: int = 0

    def __len__(self) -> int:
        return len(self.dids)

    def add(self, pid: int, did: int, terms: list[str]) -> None:
        self.dids[pid] = did
        self.terms[pid] = terms
        self.tokens += len(terms)
        for term, count in Counter(terms).items():
            self.postings.setdefault(term, {})[pid] = count

    def remove(self, pid: int) -> None:
        if self.dids.pop(pid, None) is None:
            return
        terms = self.terms.pop(pid)
        self.tokens -= len(terms)
        for term in set(terms):
            self.postings[term].pop(pid)

    def frequency(self, term: str) -> int:
        return len(self.postings.get(term, ()))

    def bm25(
        self,
        idfs: Mapping[str, float],
        required: Collection[str],
        phrases: Sequence[tuple[tuple[str, ...], float]],
        average: float,
    ) -> list[Found]:
        """Every passage that matches, scored. ``required`` terms and the phrases (each with its idf) must occur."""
        scores: dict[int, float] = {}
        for term, weight in idfs.items():
            for pid, count in self.postings.get(term, {}).items():
                scores[pid] = scores.get(pid, 0.0) + weight * self._saturation(pid, count, average)
        for term in required:
            here = self.postings.get(term, {})
            scores = {pid: score for pid, score in scores.items() if pid in here}
        matching: Collection[int] = scores if required else self.dids
        for words, weight in phrases:
            counts = {pid: self._occurrences(pid, words) for pid in matching}
            matching = scores = {
                pid: scores.get(pid, 0.0) + weight * self._saturation(pid, count, average)
                for pid, count in counts.items()
                if count
            }
        return [(score, pid, self.dids[pid]) for pid, score in scores.items()]

    def _saturation(self, pid: int, count: int, average: float) -> float:
        norm = K1 * (1.0 - B + B * len(self.terms[pid]) / average)
        return (K1 + 1.0) * count / (count + norm)

    def _occurrences(self, pid: int, words: tuple[str, ...]) -> int:
        if any(pid not in self.postings.get(word, ()) for word in words):
            return 0
        terms, first, width = self.terms[pid], words[0], len(words)
        return sum(1 for at, term in enumerate(terms) if term == first and tuple(terms[at : at + width]) == words)


def idf(documents: int, frequency: int) -> float:
    """Lucene's and tantivy's idf; removals not yet merged away can make the frequency exceed the documents."""
    return math.log(1.0 + (max(documents - frequency, 0) + 0.5) / (frequency + 0.5))
