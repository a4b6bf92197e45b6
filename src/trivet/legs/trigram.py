"""The trigram leg: pg_trgm's ``word_similarity`` of the query's keywords with each passage, for misspelt words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from trivet.legs.leg import LegContext, LegQuery
from trivet.types import Ranking

if TYPE_CHECKING:
    from trivet.stores.contract import Collection, State

THRESHOLD = 0.3  # of the profile `chunks`; pg_trgm's own default is 0.6
MAX_CHARACTERS = 1_000  # of keywords: the similarity of a whole page with a passage means nothing


@dataclass(frozen=True, slots=True)
class Trigram:
    """Word similarity on the trigram index of a collection."""

    collection: Collection
    name: ClassVar[str] = "trigram"
    seeded: ClassVar[bool] = False
    incomplete: ClassVar[str] = ""

    @classmethod
    def build(cls, context: LegContext) -> Trigram | None:
        return cls(context.collection) if context.has_text else None

    def is_current(self, state: State) -> bool:
        return self.collection.trigrams.is_current(state)

    def rank(self, query: LegQuery, depth: int) -> Ranking:
        keywords = " ".join(self.collection.analyzer.keywords(query.text))[:MAX_CHARACTERS]
        if not any(character.isalnum() for character in keywords):
            return Ranking(self.name, notes=("no keywords in the query",))
        threshold = THRESHOLD if query.gate is None else query.gate
        found, notes = self.collection.trigrams.search(keywords, threshold, depth, query.scope, query.version)
        return Ranking.of(self.name, found, notes=notes)
