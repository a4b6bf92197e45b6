"""Which documents does the server say are spelt like the question?

The trigram leg of a store whose server compares spellings itself (pg_trgm), with an index made for it: every passage
is looked at, and none is left out for time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from trivet.legs.question import Found, Question, ranking
from trivet.legs.trigram import MAX_CHARACTERS, THRESHOLD
from trivet.types import Ranking


class Scoring(Protocol):
    def find_alike(
        self, keywords: str, threshold: float, depth: int, scope: Any, version: int
    ) -> tuple[list[Found], tuple[str, ...]]:
        """(found, by what): documents whose ``word_similarity`` with the keywords is at least the threshold."""


@dataclass(frozen=True, slots=True)
class Alike:
    keywords: Callable[[str], list[str]]
    scoring: Scoring
    name: str = "trigram"

    def rank(self, question: Question, depth: int) -> Ranking:
        keywords = " ".join(self.keywords(question.text))[:MAX_CHARACTERS]
        if not any(mark.isalnum() for mark in keywords):
            return Ranking(self.name, notes=("no keywords in the question",))
        threshold = THRESHOLD if question.gate is None else question.gate
        found, notes = self.scoring.find_alike(keywords, threshold, depth, question.scope, question.version)
        return ranking(self.name, found, notes=notes)
