"""The Qdrant client's local mode: a numpy scan, and sparse vectors in Python. BM25 weights by Qdrant's own model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qdrant_client import QdrantClient, models
from qdrant_edge import Bm25, Bm25Config

from corpus import Corpus, Document, Floats, whole

FIELDS = ("shelf", "half")
NAME = "documents"


class Engine:
    def __init__(self, folder: Path, setting: dict[str, Any]) -> None:
        self.folder, self.setting = folder, setting
        self.bm25 = Bm25(Bm25Config(language="english"))

    def build(self, corpus: Corpus) -> None:
        self.client = QdrantClient(path=str(self.folder))
        size = corpus.vectors.shape[1]
        self.client.create_collection(
            NAME,
            vectors_config={"meaning": models.VectorParams(size=size, distance=models.Distance.COSINE)},
            sparse_vectors_config={"words": models.SparseVectorParams(modifier=models.Modifier.IDF)},
        )
        at = 0
        for documents, vectors in corpus.batches():
            points = [self._point(at + n, *item) for n, item in enumerate(zip(documents, vectors, strict=True))]
            self.client.upsert(NAME, points)
            at += len(points)

    def _point(self, number: int, document: Document, vector: Floats) -> models.PointStruct:
        payload = {"id": document["id"], "text": whole(document)}
        payload |= {field: document["meta"][field] for field in FIELDS}
        words = _sparse(self.bm25.embed_document(payload["text"]))
        return models.PointStruct(id=number, vector={"meaning": vector.tolist(), "words": words}, payload=payload)

    def open(self) -> None:
        self.client = QdrantClient(path=str(self.folder))
        self.fresh = 1 << 40

    def search(self, text: str, vector: Floats, where: dict[str, str], k: int) -> list[tuple[str, str]]:
        asked = {"filter": _filter(where), "limit": self.setting["prefetch"]}
        found = self.client.query_points(
            NAME,
            prefetch=[
                models.Prefetch(query=vector.tolist(), using="meaning", **asked),
                models.Prefetch(query=_sparse(self.bm25.embed_query(text)), using="words", **asked),
            ],
            query=models.FusionQuery(fusion=models.Fusion.RRF),
            limit=k,
            with_payload=["id", "text"],
        )
        return [(point.payload["id"], point.payload["text"]) for point in found.points]

    def dense(self, vector: Floats, where: dict[str, str], k: int) -> list[str]:
        found = self.client.query_points(
            NAME, query=vector.tolist(), using="meaning", query_filter=_filter(where), limit=k, with_payload=["id"]
        )
        return [point.payload["id"] for point in found.points]

    def write(self, document: Document, vector: Floats) -> None:
        self.fresh += 1
        self.client.upsert(NAME, [self._point(self.fresh, document, vector)])

    def handle(self) -> Engine:
        return self

    def close(self) -> None:
        self.client.close()


def _sparse(given: Any) -> models.SparseVector:
    return models.SparseVector(indices=list(given.indices), values=list(given.values))


def _filter(where: dict[str, str]) -> models.Filter | None:
    if not where:
        return None
    return models.Filter(
        must=[models.FieldCondition(key=field, match=models.MatchValue(value=v)) for field, v in where.items()]
    )
