"""Finds the documents whose metadata say ``pinned``, whatever the query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from trivet.filters import Eq
from trivet.types import Ranking


@dataclass(frozen=True, slots=True)
class Pinned:
    """Ranks every pinned document that the filter of the query allows, in the order of adding."""

    collection: Any
    name: ClassVar[str] = "pinned"
    seeded: ClassVar[bool] = False
    incomplete: ClassVar[str] = ""

    @classmethod
    def build(cls, context: Any) -> Pinned:
        return cls(context.collection)

    def is_current(self, state: Any) -> bool:
        return True

    def rank(self, query: Any, depth: int) -> Ranking:
        found = [key for key, _ in self.collection.documents.page(Eq("pinned", True), 0, depth)]
        keys = tuple(key for key in found if query.scope is None or key in query.scope)
        return Ranking(self.name, keys, (1.0,) * len(keys))
