"""The interface of an engine in the comparison.

A peer is one small module with a class ``Engine`` of these methods, run in an environment of its own by ``worker.py``.
It needs numpy and nothing of trivet. ``registry.py`` lists the engines, what each installs and its settings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from corpus import Corpus, Document, Floats

Where = dict[str, str]  # field → value, all of which must hold; none is empty
Found = list[tuple[str, str]]  # id and text, best first


class Peer(Protocol):
    def __init__(self, folder: Path, setting: dict[str, Any]) -> None: ...

    def build(self, corpus: Corpus) -> None:
        """Load documents and vectors, build the indexes as its documentation recommends, write all, and stay open."""

    def open(self) -> None:
        """Open the folder that ``build`` wrote, in a new process."""

    def search(self, text: str, vector: Floats, where: Where, k: int) -> Found:
        """Run its own hybrid search with the given text and vector; return hits with texts."""

    def dense(self, vector: Floats, where: Where, k: int) -> list[str]:
        """Return ids by the vector alone, as its hybrid search would fetch them."""

    def write(self, document: Document, vector: Floats) -> None:
        """Store one more document; the next search must be able to find it."""

    def handle(self) -> Peer:
        """Return an engine for another thread; itself, where it can be shared."""

    def close(self) -> None: ...
