"""LlamaIndex's QueryFusionRetriever (reciprocal_rerank, no generated questions) over BM25Retriever and FAISS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import faiss
from llama_index.core import MockEmbedding, Settings, StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever, VectorIndexRetriever
from llama_index.core.schema import QueryBundle, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25 import BM25Retriever
from llama_index.vector_stores.faiss import FaissVectorStore

from corpus import Corpus, Document, Floats, whole

FIELDS = ("shelf", "half")


class Engine:
    turns = True  # reading while it is written to breaks it: two threads take turns

    def __init__(self, folder: Path, setting: dict[str, Any]) -> None:
        self.folder, self.setting = folder, setting
        Settings.llm = MockLLM()
        self.masked: dict[Any, Any] = {}

    def _index(self, dim: int) -> Any:
        if self.setting["faiss"] == "flat":
            return faiss.IndexFlatIP(dim)
        made = faiss.IndexHNSWFlat(dim, 32, faiss.METRIC_INNER_PRODUCT)
        made.hnsw.efConstruction, made.hnsw.efSearch = 200, self.setting["ef"]
        return made

    def build(self, corpus: Corpus) -> None:
        dim = corpus.vectors.shape[1]
        Settings.embed_model = MockEmbedding(embed_dim=dim)
        context = StorageContext.from_defaults(vector_store=FaissVectorStore(self._index(dim)))
        self.index = VectorStoreIndex([], storage_context=context, store_nodes_override=True)
        for documents, vectors in corpus.batches(10_000):
            self.index.insert_nodes(_nodes(documents, vectors))
        self._read_words()
        self.index.storage_context.persist(str(self.folder / "index"))
        self.bm25.persist(str(self.folder / "bm25"))

    def _read_words(self) -> None:
        """Build BM25 again from all documents: it takes no additions."""
        self.bm25 = BM25Retriever.from_defaults(index=self.index, similarity_top_k=self.setting["depth"])
        self.masked.clear()

    def open(self) -> None:
        path = str(self.folder / "index")
        context = StorageContext.from_defaults(vector_store=FaissVectorStore.from_persist_dir(path), persist_dir=path)
        Settings.embed_model = MockEmbedding(embed_dim=context.vector_store._faiss_index.d)
        self.index = load_index_from_storage(context)
        self.bm25 = BM25Retriever.from_persist_dir(str(self.folder / "bm25"))

    def search(self, text: str, vector: Floats, where: dict[str, str], k: int) -> list[tuple[str, str]]:
        """Search; BM25 takes a filter as a mask, made once; FAISS takes none, so more is fetched and filtered."""
        depth = self.setting["fetch"] if where else self.setting["depth"]
        both = QueryFusionRetriever(
            [self._words(where), VectorIndexRetriever(self.index, similarity_top_k=depth)],
            mode="reciprocal_rerank",
            num_queries=1,
            use_async=False,
            similarity_top_k=2 * depth,
        )
        found = both.retrieve(QueryBundle(text, embedding=vector.tolist()))
        kept = [item.node for item in found if all(item.node.metadata[f] == v for f, v in where.items())]
        return [(node.node_id, node.text) for node in kept[:k]]

    def _words(self, where: dict[str, str]) -> Any:
        key = tuple(where.items())
        if key and key not in self.masked:
            filters = MetadataFilters(filters=[MetadataFilter(key=field, value=value) for field, value in key])
            self.masked[key] = BM25Retriever(
                existing_bm25=self.bm25.bm25, similarity_top_k=self.setting["depth"], filters=filters
            )
        return self.masked[key] if key else self.bm25

    def dense(self, vector: Floats, where: dict[str, str], k: int) -> list[str]:
        asked = VectorIndexRetriever(self.index, similarity_top_k=self.setting["fetch"] if where else k)
        found = asked.retrieve(QueryBundle("", embedding=vector.tolist()))
        kept = [item.node for item in found if all(item.node.metadata[f] == v for f, v in where.items())]
        return [node.node_id for node in kept[:k]]

    def write(self, document: Document, vector: Floats) -> None:
        self.index.insert_nodes(_nodes([document], vector[None]))
        self._read_words()

    def handle(self) -> Engine:
        return self

    def close(self) -> None:
        pass


def _nodes(documents: list[Document], vectors: Floats) -> list[TextNode]:
    return [
        TextNode(
            id_=item["id"],
            text=whole(item),
            metadata={field: item["meta"][field] for field in FIELDS},
            excluded_embed_metadata_keys=list(FIELDS),
            excluded_llm_metadata_keys=list(FIELDS),
            embedding=vector.tolist(),
        )
        for item, vector in zip(documents, vectors, strict=True)
    ]
