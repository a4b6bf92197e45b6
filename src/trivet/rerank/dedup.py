"""Which hits say what an earlier one has said already?

Those whose text folds to the same; the first, which is the best, stays. A document without text goes by its title, and
one without either is nobody's copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from trivet.rerank.folding import fold
from trivet.rerank.reranker import Reranker, option, renumbered
from trivet.types import Document, Hit, Query

LOOKED_AT, SURE = 96, 32  # characters of a text, and of its folded beginning, by which most are told apart


@dataclass(frozen=True)
class Dedup(Reranker):
    name: ClassVar[str] = "dedup"

    limit: int = option(0, "hits kept at most; 0 or less: no cap")

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        alone: dict[str, Document | None] = {}  # by its beginning; only what begins alike is folded whole
        seen: set[tuple[str, str]] = set()
        kept: list[Hit] = []
        for hit in hits:
            if 0 < self.limit <= len(kept):
                break
            begins = _beginning(hit.document.text)
            if begins in alone:
                if (first := alone[begins]) is not None:
                    seen.add(_content(first))
                    alone[begins] = None
                content = _content(hit.document)
                if content in seen:
                    continue
                seen.add(content)
            else:
                alone[begins] = hit.document
            kept.append(hit)
        return renumbered(kept)


def _beginning(text: str) -> str:
    """The first letters of the folded text. In ASCII a beginning folds to the beginning."""
    begun = fold(text[:LOOKED_AT]) if text.isascii() else ""
    return (begun if len(begun) >= SURE else fold(text))[:SURE]


def _content(document: Document) -> tuple[str, str]:
    """The folded content and where it comes from, so that a text is never the copy of a title."""
    if text := fold(document.text):
        return "text", text
    if title := fold(document.title):
        return "title", title
    return "id", document.id
