"""txtai with content, its hybrid of BM25 and Faiss, vectors brought from outside, filters in its SQL."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from corpus import Corpus, Document, Floats, whole

os.environ["ALLOW_RESOLVE_TRANSFORM"] = "True"  # the function it shall call is ours, below

from txtai import Embeddings

FIELDS = ("shelf", "half")


class Given(threading.local):
    """The vectors of the next texts, in order; each thread has its own."""

    def __init__(self) -> None:
        self.rows: deque[Floats] = deque()


GIVEN = Given()


def vectors(texts: list[str]) -> Any:
    """Return the vectors; txtai calls this by its name."""
    return np.stack([GIVEN.rows.popleft() for _ in texts])


class Engine:
    turns = True  # reading while it is written to breaks it: two threads take turns

    def __init__(self, folder: Path, setting: dict[str, Any]) -> None:
        self.path, self.setting = str(folder / "index"), setting

    def build(self, corpus: Corpus) -> None:
        self.embeddings = Embeddings(
            method="external", transform="peers.txtai.vectors", content=True, hybrid=True, **self.setting["config"]
        )
        self.embeddings.index(self._rows(corpus))
        self.embeddings.save(self.path)

    def _rows(self, corpus: Corpus) -> Iterator[Any]:
        for documents, vectors in corpus.batches():
            for document, vector in zip(documents, vectors, strict=True):
                GIVEN.rows.append(vector)
                yield _row(document)

    def open(self) -> None:
        self.embeddings = Embeddings()
        self.embeddings.load(self.path)

    def search(self, text: str, vector: Floats, where: dict[str, str], k: int) -> list[tuple[str, str]]:
        """Search; its SQL filters the hits of the indexes, and ``candidates`` says how many those are."""
        GIVEN.rows = deque([vector])
        wide = self.setting["candidates"] if where else self.setting["depth"]
        narrowed = "".join(f" AND {field} = '{value}'" for field, value in where.items())
        found = self.embeddings.search(
            f"SELECT id, text, score FROM txtai WHERE similar(:asked, {wide}){narrowed}", k, parameters={"asked": text}
        )
        return [(item["id"], item["text"]) for item in found]

    def dense(self, vector: Floats, where: dict[str, str], k: int) -> list[str]:
        GIVEN.rows = deque([vector])
        wide = self.setting["candidates"] if where else k
        narrowed = "".join(f" AND {field} = '{value}'" for field, value in where.items())
        found = self.embeddings.search(f"SELECT id, score FROM txtai WHERE similar('x', {wide}, 1.0){narrowed}", k)
        return [item["id"] for item in found]

    def write(self, document: Document, vector: Floats) -> None:
        GIVEN.rows = deque([vector])
        self.embeddings.upsert([_row(document)])

    def handle(self) -> Engine:
        return self

    def close(self) -> None:
        self.embeddings.close()


def _row(document: Document) -> Any:
    meta = {field: document["meta"][field] for field in FIELDS}
    return document["id"], {"text": whole(document), **meta}, None
