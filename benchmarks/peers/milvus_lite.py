"""Milvus Lite through pymilvus: HNSW, its BM25 function, inverted indexes for the filters, its RRF ranker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pymilvus import AnnSearchRequest, DataType, Function, FunctionType, MilvusClient, RRFRanker

from corpus import Corpus, Document, Floats, whole

FIELDS = ("shelf", "half")
NAME = "documents"


class Engine:
    def __init__(self, folder: Path, setting: dict[str, Any]) -> None:
        self.path, self.setting = str(folder / "milvus.db"), setting

    def build(self, corpus: Corpus) -> None:
        self.client = MilvusClient(self.path)
        schema = MilvusClient.create_schema(auto_id=False)
        schema.add_field("id", DataType.VARCHAR, max_length=512, is_primary=True)
        schema.add_field("text", DataType.VARCHAR, max_length=65535, enable_analyzer=True)
        for field in FIELDS:
            schema.add_field(field, DataType.VARCHAR, max_length=8)
        schema.add_field("meaning", DataType.FLOAT_VECTOR, dim=corpus.vectors.shape[1])
        schema.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
        bm25 = {"input_field_names": ["text"], "output_field_names": ["words"]}
        schema.add_function(Function(name="bm25", function_type=FunctionType.BM25, **bm25))
        self.client.create_collection(NAME, schema=schema)
        for documents, vectors in corpus.batches():
            rows = [_row(*item) for item in zip(documents, vectors, strict=True)]
            self.client.insert(NAME, rows)
        self.client.flush(NAME)
        indexes = self.client.prepare_index_params()
        indexes.add_index("meaning", metric_type="COSINE", **self.setting["index"])
        indexes.add_index("words", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
        for field in FIELDS:
            indexes.add_index(field, index_type="INVERTED")
        self.client.create_index(NAME, indexes)
        self.client.load_collection(NAME)

    def open(self) -> None:
        self.client = MilvusClient(self.path)
        self.client.load_collection(NAME)

    def search(self, text: str, vector: Floats, where: dict[str, str], k: int) -> list[tuple[str, str]]:
        narrowed, depth = _filter(where), self.setting["depth"]
        meaning = AnnSearchRequest(
            [vector.tolist()], "meaning", self._param("COSINE", self.setting["search"]), depth, narrowed
        )
        words = AnnSearchRequest([text], "words", self._param("BM25", {}), depth, narrowed)
        found = self.client.hybrid_search(NAME, [meaning, words], RRFRanker(), k, output_fields=["text"])
        return [(hit["id"], hit["entity"]["text"]) for hit in found[0]]

    def dense(self, vector: Floats, where: dict[str, str], k: int) -> list[str]:
        found = self.client.search(
            NAME,
            [vector.tolist()],
            anns_field="meaning",
            filter=_filter(where) or "",
            limit=k,
            search_params=self._param("COSINE", self.setting["search"]),
        )
        return [hit["id"] for hit in found[0]]

    def _param(self, metric: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"metric_type": metric, "params": params}

    def write(self, document: Document, vector: Floats) -> None:
        self.client.insert(NAME, [_row(document, vector)])

    def handle(self) -> Engine:
        return self

    def close(self) -> None:
        self.client.close()


def _row(document: Document, vector: Floats) -> dict[str, Any]:
    meta = {field: document["meta"][field] for field in FIELDS}
    return {"id": document["id"], "text": whole(document), "meaning": vector.tolist(), **meta}


def _filter(where: dict[str, str]) -> str | None:
    return " and ".join(f"{field} == '{value}'" for field, value in where.items()) or None
