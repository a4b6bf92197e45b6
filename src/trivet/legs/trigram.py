"""Which documents are spelt like the question?

pg_trgm's ``word_similarity`` of the question's keywords with each passage. Scoring every passage takes seconds on a
large collection, so an index of trigrams proposes the likeliest by BM25 and those are scored exactly; the trace says
when there were more than were scored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trivet.legs.question import Found, Question, ranking
from trivet.trigrams import PreparedQuery
from trivet.types import Ranking

THRESHOLD = 0.3  # seed 002's; pg_trgm's own default is 0.6
LIKELIEST = 128  # passages scored at least; about 0.1 ms each, abstracts of 1,200 letters
PER_WANTED = 8  # and this many for each document wanted
MAX_CHARACTERS = 1_000  # of keywords: similarity of a whole page with a passage says nothing


class Trigrams(Protocol):
    def find_trigrams(self, terms: Sequence[str], depth: int, scope: Any, version: int) -> list[Found]:
        """The ``depth`` passages likeliest to be spelt like these trigrams."""

    def passage_texts(self, pids: Sequence[int]) -> dict[int, str]: ...


@dataclass(frozen=True, slots=True)
class Trigram:
    keywords: Callable[[str], list[str]]
    trigrams: Trigrams
    name: str = "trigram"

    def rank(self, question: Question, depth: int) -> Ranking:
        from trivet.stretches import similarities  # numpy: not at `import trivet`

        query = PreparedQuery(" ".join(self.keywords(question.text))[:MAX_CHARACTERS])
        if not query.trigrams:
            return Ranking(self.name, notes=("no keywords in the question",))
        threshold = THRESHOLD if question.gate is None else question.gate
        asked = max(LIKELIEST, PER_WANTED * depth)
        proposed = self.trigrams.find_trigrams(list(query.trigrams), asked, question.scope, question.version)
        notes = (f"scored the {asked} likeliest passages",) if len(proposed) == asked else ()
        texts = self.trigrams.passage_texts([pid for _, pid, _ in proposed])
        scores = dict(zip(texts, similarities(query, list(texts.values())), strict=True))
        best: dict[int, Found] = {}
        for _, pid, did in proposed:
            score = scores.get(pid, 0.0)
            if score >= threshold and (did not in best or score > best[did][0]):
                best[did] = (score, pid, did)
        found = sorted(best.values(), key=lambda hit: (-hit[0], hit[2]))[:depth]
        return ranking(self.name, found, notes=notes)
