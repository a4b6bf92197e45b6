from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trivet.types import Document, Hit, Passage

MakeHit = Callable[..., Hit]


@pytest.fixture(scope="session")
def hit() -> MakeHit:
    """A hit of one's own: ``hit("a", 0.5, importance=1.0, text="…")``."""

    def make(id: str, score: float, *, rank: int = 1, passage: str | None = None, text: str = "", **known: Any) -> Hit:
        text = text or f"text of {id}"
        part = text if passage is None else passage
        return Hit(
            rank=rank,
            id=id,
            score=score,
            relevance=0.5,
            document=Document(id=id, text=text, **known),
            passage=Passage(0, 0, len(part), part),
            fused=score,
        )

    return make
