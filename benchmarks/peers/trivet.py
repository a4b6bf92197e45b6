"""trivet, through its public API: as it ships, or with the two legs that a peer's hybrid has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import trivet
from corpus import Corpus, Document, Floats

#: A peer's hybrid: words and meaning, fused. No graph, nothing learned, the question taken as it stands.
TWO_LEGS = {"weights": {"graph": 0}, "weighing": "fixed", "rerankers": [], "understanding": "plain"}


class Engine:
    def __init__(self, folder: Path, setting: dict[str, Any]) -> None:
        self.path, self.two_legs = folder / "memory.db", setting["legs"] == "two"
        depth = setting.get("depth")
        self.depths = {"lexical_depth": depth, "dense_depth": depth} if depth else {}
        self.degraded = 0  # answers that a part of it was missing from

    def build(self, corpus: Corpus) -> None:
        self.engine = trivet.open(self.path, embedder=f"vectors:{corpus.vectors.shape[1]}")
        if self.two_legs:
            self.engine.update_settings(**TWO_LEGS, **self.depths)
        self.engine.add(
            {**document, "vector": vector}
            for documents, vectors in corpus.batches()
            for document, vector in zip(documents, vectors, strict=True)
        )
        self.engine.prepare()

    def open(self) -> None:
        self.engine = trivet.open(self.path, create=False)

    def search(self, text: str, vector: Floats, where: dict[str, str], k: int) -> list[tuple[str, str]]:
        hits = self.engine.search(text, k, where or None, vector=vector)
        self.degraded += bool(hits.degraded)
        return [(hit.id, hit.document.text) for hit in hits]

    def dense(self, vector: Floats, where: dict[str, str], k: int) -> list[str]:
        alone = {"weights": {"lexical": 0, "graph": 0, "dense": 1}, "rerankers": [], "understanding": "plain"}
        hits = self.engine.search("", k, where or None, vector=vector, dense_depth=k, weighing="fixed", **alone)
        return [hit.id for hit in hits]

    def write(self, document: Document, vector: Floats) -> None:
        self.engine.add({**document, "vector": vector})

    def handle(self) -> Engine:
        return self

    def close(self) -> None:
        self.engine.close()
