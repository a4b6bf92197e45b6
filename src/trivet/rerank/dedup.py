"""Drops duplicates: hits whose text is the same as that of a better hit, up to case, width and white space.

A document without text is compared by its title. A document without both is never a duplicate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from trivet.rerank.reranker import Reranker, option, renumbered
from trivet.text.tokens import comparable
from trivet.types import Document, Hit, Query

#: Characters of a text, and of its folded beginning, that are compared first: most texts differ within them.
LOOKED_AT, SURE = 48, 32
_SPACES = bytes(code for code in range(128) if chr(code).isspace())


@dataclass(frozen=True)
class Dedup(Reranker):
    """Drops hits whose text is the same as that of a better hit."""

    name: ClassVar[str] = "dedup"
    drops_only: ClassVar[bool] = True

    limit: int = option(0, "hits kept at most; 0 or less: no limit")

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        # By beginning: the only document with it so far, else None. Only texts that begin alike are compared whole.
        alone: dict[str, Document | None] = {}
        seen: dict[bytes, list[Document]] = {}  # by letters
        kept: list[Hit] = []
        for hit in hits:
            if 0 < self.limit <= len(kept):
                break
            beginning = _beginning(hit.document.text)
            if beginning in alone:
                if (first := alone[beginning]) is not None:
                    seen.setdefault(_letters(first.text), []).append(first)
                    alone[beginning] = None
                like = seen.setdefault(_letters(hit.document.text), [])
                if like and _content(hit.document) in map(_content, like):
                    continue
                like.append(hit.document)
            else:
                alone[beginning] = hit.document
            kept.append(hit)
        return renumbered(kept)


def _beginning(text: str) -> str:
    """Return the first characters of the folded text. In ASCII, they come from the first characters of the text."""
    folded = comparable(text[:LOOKED_AT]) if text.isascii() else ""
    return (folded if len(folded) >= SURE else comparable(text))[:SURE]


def _letters(text: str) -> bytes:
    """Return the folded text without its spaces: what differs here differs. Far quicker than to fold ASCII."""
    if text.isascii():
        return text.lower().encode().translate(None, _SPACES)
    return comparable(text).replace(" ", "").encode()


def _content(document: Document) -> tuple[str, str]:
    """Return the folded content and where it is from, so that a text is never the duplicate of a title."""
    if text := comparable(document.text):
        return "text", text
    if title := comparable(document.title):
        return "title", title
    return "id", document.id
