"""Qdrant's own shard in this process: HNSW and its BM25 as a sparse vector, both prefetched, fused by RRF."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import qdrant_edge as q

from corpus import Corpus, Document, Floats, whole

FIELDS = ("shelf", "half")


class Engine:
    def __init__(self, folder: Path, setting: dict[str, Any]) -> None:
        self.folder, self.setting = folder, setting
        self.bm25 = q.Bm25(q.Bm25Config(language="english"))

    def build(self, corpus: Corpus) -> None:
        ram = {"memory": q.Memory.Pinned} if self.setting.get("quantized") else {}
        config = q.EdgeConfig(
            vectors={"meaning": q.EdgeVectorParams(size=corpus.vectors.shape[1], distance=q.Distance.Cosine)},
            sparse_vectors={"words": q.EdgeSparseVectorParams(modifier=q.Modifier.Idf)},
            hnsw_config=q.HnswIndexConfig(**self.setting["hnsw"]),
            quantization_config=q.ScalarQuantizationConfig(type=q.ScalarType.Int8, quantile=0.99, **ram)
            if self.setting.get("quantized")
            else None,
        )
        self.shard = q.EdgeShard.create(str(self.folder), config)
        for field in FIELDS:
            self.shard.update(q.UpdateOperation.create_field_index(field, q.PayloadSchemaType.Keyword))
        at = 0
        for documents, vectors in corpus.batches():
            points = [self._point(at + n, *item) for n, item in enumerate(zip(documents, vectors, strict=True))]
            self.shard.update(q.UpdateOperation.upsert_points(points))
            at += len(points)
        self.shard.optimize()
        self.shard.flush()

    def _point(self, number: int, document: Document, vector: Floats) -> Any:
        payload = {"id": document["id"], "text": whole(document)}
        payload |= {field: document["meta"][field] for field in FIELDS}
        words = self.bm25.embed_document(payload["text"])
        return q.Point(number, {"meaning": vector.tolist(), "words": words}, payload)

    def open(self) -> None:
        self.shard = q.EdgeShard.load(str(self.folder))
        self.fresh = 1 << 40

    def search(self, text: str, vector: Floats, where: dict[str, str], k: int) -> list[tuple[str, str]]:
        narrowed = _filter(where)
        depth = self.setting["prefetch"]
        found = self.shard.query(
            q.QueryRequest(
                prefetches=[
                    q.Prefetch(query=self._meaning(vector), filter=narrowed, limit=depth, params=self._params()),
                    q.Prefetch(
                        query=q.Query.Nearest(self.bm25.embed_query(text), using="words"), filter=narrowed, limit=depth
                    ),
                ],
                query=q.Fusion.Rrf(k=2),  # the server's default
                limit=k,
                with_payload=["id", "text"],
            )
        )
        return [(point.payload["id"], point.payload["text"]) for point in found]

    def dense(self, vector: Floats, where: dict[str, str], k: int) -> list[str]:
        found = self.shard.query(
            q.QueryRequest(
                query=self._meaning(vector),
                filter=_filter(where),
                params=self._params(),
                limit=k,
                with_payload=["id"],
            )
        )
        return [point.payload["id"] for point in found]

    def _meaning(self, vector: Floats) -> Any:
        return q.Query.Nearest(vector.tolist(), using="meaning")

    def _params(self) -> Any:
        asked = self.setting["search"]
        refined = q.QuantizationSearchParams(rescore=True, oversampling=2.0) if self.setting.get("quantized") else None
        return q.SearchParams(quantization=refined, **asked)

    def write(self, document: Document, vector: Floats) -> None:
        self.fresh += 1
        self.shard.update(q.UpdateOperation.upsert_points([self._point(self.fresh, document, vector)]))

    def handle(self) -> Engine:
        return self

    def close(self) -> None:
        self.shard.close()


def _filter(where: dict[str, str]) -> Any:
    if not where:
        return None
    return q.Filter(must=[q.FieldCondition(key=field, match=q.MatchValue(value=v)) for field, v in where.items()])
