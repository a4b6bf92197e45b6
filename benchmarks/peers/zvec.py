"""zvec: HNSW, its full-text index and inverted indexes for the filters; both asked in one query, fused by RRF."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import zvec

from corpus import Corpus, Document, Floats, whole

FIELDS = ("shelf", "half")
TEXT = zvec.FtsIndexParam(filters=["lowercase", "ascii_folding", "stemmer"])


class Engine:
    def __init__(self, folder: Path, setting: dict[str, Any]) -> None:
        self.path, self.setting = str(folder / "documents"), setting

    def build(self, corpus: Corpus) -> None:
        index = zvec.HnswIndexParam(
            metric_type=zvec.MetricType.COSINE,
            quantize_type=zvec.QuantizeType.INT8 if self.setting["int8"] else zvec.QuantizeType.UNDEFINED,
            **self.setting["index"],
        )
        schema = zvec.CollectionSchema(
            name="documents",
            fields=[
                zvec.FieldSchema("key", zvec.DataType.STRING),
                zvec.FieldSchema("text", zvec.DataType.STRING, index_param=TEXT),
                *(zvec.FieldSchema(name, zvec.DataType.STRING, index_param=zvec.InvertIndexParam()) for name in FIELDS),
            ],
            vectors=[
                zvec.VectorSchema(
                    "meaning", zvec.DataType.VECTOR_FP32, dimension=corpus.vectors.shape[1], index_param=index
                )
            ],
        )
        self.collection = zvec.create_and_open(self.path, schema)
        at = 0
        for documents, vectors in corpus.batches():
            docs = [_doc(str(at + n), *item) for n, item in enumerate(zip(documents, vectors, strict=True))]
            for status in self.collection.insert(docs):
                assert status.ok(), status
            at += len(docs)
        self.collection.optimize()
        self.collection.flush()

    def open(self) -> None:
        self.collection = zvec.open(self.path)
        self.fresh = 0

    def search(self, text: str, vector: Floats, where: dict[str, str], k: int) -> list[tuple[str, str]]:
        found = self.collection.query(
            [self._meaning(vector), zvec.Query("text", fts=zvec.Fts(match_string=text))],
            topk=k,
            filter=_filter(where),
            output_fields=["key", "text"],
            reranker=zvec.RrfReRanker(),
        )
        return [(doc.fields["key"], doc.fields["text"]) for doc in found]

    def dense(self, vector: Floats, where: dict[str, str], k: int) -> list[str]:
        found = self.collection.query(self._meaning(vector), topk=k, filter=_filter(where), output_fields=["key"])
        return [doc.fields["key"] for doc in found]

    def _meaning(self, vector: Floats) -> Any:
        param = zvec.HnswQueryParam(ef=self.setting["ef"], is_using_refiner=self.setting["int8"])
        return zvec.Query("meaning", vector=vector.tolist(), param=param)

    def write(self, document: Document, vector: Floats) -> None:
        status = self.collection.insert(_doc("fresh" + document["id"].replace(":", "_"), document, vector))
        assert status.ok(), status

    def handle(self) -> Engine:
        return self

    def close(self) -> None:
        self.collection.flush()
        self.collection.close()


def _doc(number: str, document: Document, vector: Floats) -> Any:
    fields = {"key": document["id"], "text": whole(document), **{name: document["meta"][name] for name in FIELDS}}
    return zvec.Doc(id=number, fields=fields, vectors={"meaning": vector.tolist()})


def _filter(where: dict[str, str]) -> str | None:
    return " and ".join(f"{field} = '{value}'" for field, value in where.items()) or None
