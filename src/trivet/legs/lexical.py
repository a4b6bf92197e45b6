"""Which documents have the question's words?

BM25. All content words first; when too few documents have them all, any of them. Quoted phrases must occur.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from trivet.legs.question import Found, Question, ranking
from trivet.types import Ranking

if TYPE_CHECKING:
    from trivet.analysis import ParsedQuery


class Words(Protocol):
    def find_words(
        self, query: ParsedQuery, match: str, depth: int, scope: Any, version: int
    ) -> tuple[list[Found], float, tuple[str, ...]]:
        """(found, the score of a perfect match, how it was asked)."""


@dataclass(frozen=True, slots=True)
class Lexical:
    parse: Callable[[str], ParsedQuery]
    words: Words
    name: str = "lexical"

    def rank(self, question: Question, depth: int) -> Ranking:
        parsed = self.parse(question.text)
        if not parsed.terms and not parsed.phrases:
            return Ranking(self.name, notes=("no words in the question",))
        found, ceiling, notes = self.words.find_words(parsed, question.match, depth, question.scope, question.version)
        return ranking(self.name, found, ceiling=ceiling, gate=question.gate, notes=notes)
