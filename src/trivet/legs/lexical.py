"""Which documents have the question's words?

BM25. All content words first; when too few documents have them all, any of them. Quoted phrases must occur. A name that
means exactly itself (an error code, a path) counts more than its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from trivet.legs.expansion import HEADS, expanded
from trivet.legs.question import Found, Question, ranking
from trivet.types import Document, Ranking

if TYPE_CHECKING:
    from trivet.analysis import ParsedQuery


EXACT = 1.5  # what the whole of a name is worth; its parts count as ever


class Words(Protocol):
    def find_words(
        self, query: ParsedQuery, match: str, depth: int, scope: Any, version: int
    ) -> tuple[list[Found], float, tuple[str, ...]]:
        """(found, the score of a perfect match, how it was asked)."""


@dataclass(frozen=True, slots=True)
class Lexical:
    parse: Callable[[str], ParsedQuery]
    words: Words
    fetch: Callable[[Sequence[int]], Mapping[int, Document]] | None = None  # needed for an expansion
    name: str = "lexical"

    def rank(self, question: Question, depth: int) -> Ranking:
        parsed = self.parse(question.text)
        if not parsed.terms and not parsed.phrases:
            return Ranking(self.name, notes=("no words in the question",))
        if question.exact or question.lenient:
            wholes = dict.fromkeys(max(self.parse(name).terms, key=len, default="") for name in question.exact)
            weights = tuple((term, EXACT) for term in wholes if term in parsed.terms)
            parsed = replace(parsed, weights=weights, lenient=question.lenient)
        found, ceiling, notes = self._find(parsed, question, depth)
        if question.expansion and self.fetch is not None:
            heads = found[:HEADS]
            texts = self.fetch([did for _, _, did in heads])
            read = [(score, texts[did].text) for score, _, did in heads if did in texts]
            wider = expanded(parsed, read, lambda text: self.parse(text).required, question.expansion)
            if wider is not parsed:
                found, ceiling, notes = self._find(wider, question, depth)
                notes = (*notes, f"{len(wider.terms) - len(parsed.terms)} words added")
        return ranking(self.name, found, ceiling=ceiling, gate=question.gate, notes=notes)

    def _find(self, parsed: ParsedQuery, question: Question, depth: int) -> tuple[list[Found], float, tuple[str, ...]]:
        return self.words.find_words(parsed, question.match, depth, question.scope, question.version)
