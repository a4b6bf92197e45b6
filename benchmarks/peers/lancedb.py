"""LanceDB: a vector index, its native full-text index, bitmap indexes for the filters, its default RRF reranker."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

os.environ.setdefault("LANCEDB_LOG", "error")  # it warns of every query

import lancedb
import pyarrow as pa
from lancedb.rerankers import RRFReranker

from corpus import Corpus, Document, Floats, whole

FIELDS = ("shelf", "half")


class Engine:
    def __init__(self, folder: Path, setting: dict[str, Any]) -> None:
        self.folder, self.setting = folder, setting
        self.reranker = RRFReranker()

    def build(self, corpus: Corpus) -> None:
        dim = corpus.vectors.shape[1]
        names = ("id", "text", *FIELDS)
        schema = pa.schema([*((name, pa.string()) for name in names), ("vector", pa.list_(pa.float32(), dim))])

        def batches() -> Any:
            for documents, vectors in corpus.batches(10_000):
                yield _arrow(documents, vectors, schema)

        self.table = lancedb.connect(self.folder).create_table("documents", data=batches(), schema=schema)
        index = dict(self.setting["index"])
        partitions = index.pop("rows_per_partition", None)
        if partitions:
            index["num_partitions"] = max(1, len(corpus) // partitions)
        self.table.create_index(metric="cosine", vector_column_name="vector", **index)
        self.table.create_fts_index("text", with_position=False)
        for field in FIELDS:
            self.table.create_scalar_index(field, index_type="BITMAP")
        self.table.wait_for_index([item.name for item in self.table.list_indices()], timeout=timedelta(minutes=30))

    def open(self) -> None:
        self.table = lancedb.connect(self.folder).open_table("documents")

    def search(self, text: str, vector: Floats, where: dict[str, str], k: int) -> list[tuple[str, str]]:
        query = self.table.search(query_type="hybrid").vector(vector).text(text).rerank(self.reranker)
        rows = self._asked(query, where, k).select(["id", "text"]).to_arrow()
        return list(zip(rows["id"].to_pylist(), rows["text"].to_pylist(), strict=True))

    def dense(self, vector: Floats, where: dict[str, str], k: int) -> list[str]:
        found: list[str] = self._asked(self.table.search(vector), where, k).select(["id"]).to_arrow()["id"].to_pylist()
        return found

    def _asked(self, query: Any, where: dict[str, str], k: int) -> Any:
        for name, value in self.setting["query"].items():
            query = getattr(query, name)(value)
        if where:
            query = query.where(" AND ".join(f"{field} = '{value}'" for field, value in where.items()), prefilter=True)
        return query.limit(k)

    def write(self, document: Document, vector: Floats) -> None:
        self.table.add(_arrow([document], vector[None], self.table.schema))

    def handle(self) -> Engine:
        return self

    def close(self) -> None:
        pass


def _arrow(documents: list[Document], vectors: Floats, schema: pa.Schema) -> pa.RecordBatch:
    columns: list[Any] = [[item["id"] for item in documents], [whole(item) for item in documents]]
    columns += [[item["meta"][field] for item in documents] for field in FIELDS]
    flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    return pa.RecordBatch.from_arrays([*(pa.array(column, pa.string()) for column in columns), flat], schema=schema)
