"""Chroma on disk: its HNSW with metadata filters. The local engine ranks by meaning alone: it has no BM25."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chromadb
from chromadb.config import Settings

from corpus import Corpus, Document, Floats, whole

FIELDS = ("shelf", "half")


class Engine:
    def __init__(self, folder: Path, setting: dict[str, Any]) -> None:
        self.folder, self.setting = folder, setting

    def _client(self) -> Any:
        return chromadb.PersistentClient(str(self.folder), Settings(anonymized_telemetry=False))

    def build(self, corpus: Corpus) -> None:
        client = self._client()
        self.collection = client.create_collection(
            "documents", embedding_function=None, configuration={"hnsw": {"space": "cosine", **self.setting["hnsw"]}}
        )
        for documents, vectors in corpus.batches(client.get_max_batch_size()):
            self._store(documents, vectors)

    def _store(self, documents: list[Document], vectors: Floats) -> None:
        self.collection.add(
            ids=[item["id"] for item in documents],
            embeddings=vectors,
            documents=[whole(item) for item in documents],
            metadatas=[{field: item["meta"][field] for field in FIELDS} for item in documents],
        )

    def open(self) -> None:
        self.collection = self._client().get_collection("documents", embedding_function=None)

    def search(self, text: str, vector: Floats, where: dict[str, str], k: int) -> list[tuple[str, str]]:
        found = self._query(vector, where, k, ["documents"])
        return list(zip(found["ids"][0], found["documents"][0], strict=True))

    def dense(self, vector: Floats, where: dict[str, str], k: int) -> list[str]:
        ids: list[str] = self._query(vector, where, k, [])["ids"][0]
        return ids

    def _query(self, vector: Floats, where: dict[str, str], k: int, include: list[str]) -> Any:
        return self.collection.query(query_embeddings=[vector], n_results=k, where=dict(where) or None, include=include)

    def write(self, document: Document, vector: Floats) -> None:
        self._store([document], vector[None])

    def handle(self) -> Engine:
        return self

    def close(self) -> None:
        pass
