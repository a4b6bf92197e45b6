"""What does every engine have to be able to do, to be compared?

A peer is one small module with a class ``Engine`` of these verbs, run in an environment of its own by ``worker.py``. It
needs numpy and nothing of ours. Which ones there are, what each installs and at which settings it is asked is
``registry.py``.
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
        """Documents and vectors in, indexes made as its documentation advises, everything on disk; left open."""

    def open(self) -> None:
        """Open what ``build`` left in the folder, in a new process."""

    def search(self, text: str, vector: Floats, where: Where, k: int) -> Found:
        """Its own hybrid of words and the given vector; texts come with the hits."""

    def dense(self, vector: Floats, where: Where, k: int) -> list[str]:
        """Ids by meaning alone, as its hybrid would ask for them."""

    def write(self, document: Document, vector: Floats) -> None:
        """Store one more; the next search has to be able to find it."""

    def handle(self) -> Peer:
        """The same engine for another thread; itself, where it may be shared."""

    def close(self) -> None: ...
