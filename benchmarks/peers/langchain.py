"""LangChain's EnsembleRetriever over its BM25Retriever (rank_bm25) and its FAISS vector store, equal weights."""

from __future__ import annotations

import pickle
import re
import threading
from pathlib import Path
from typing import Any

import faiss
from langchain_classic.retrievers import EnsembleRetriever
from langchain_community.docstore.in_memory import InMemoryDocstore
from langchain_community.retrievers import BM25Retriever
from langchain_community.vectorstores import FAISS
from langchain_core import documents as core
from langchain_core.embeddings import Embeddings

from corpus import Corpus, Document, Floats, whole

FIELDS = ("shelf", "half")


class Given(Embeddings):
    """An embedder that returns the query's vector, which each thread sets for itself."""

    def __init__(self) -> None:
        self.of = threading.local()

    def embed_query(self, text: str) -> list[float]:
        found: list[float] = self.of.vector.tolist()
        return found

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise NotImplementedError("vectors are given")


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


class Engine:
    turns = True  # reading while it is written to breaks it: two threads take turns

    def __init__(self, folder: Path, setting: dict[str, Any]) -> None:
        self.folder, self.setting, self.given = folder, setting, Given()

    def build(self, corpus: Corpus) -> None:
        index = faiss.IndexFlatL2(corpus.vectors.shape[1])
        self.store = FAISS(self.given, index, InMemoryDocstore(), {})
        for documents, vectors in corpus.batches(10_000):
            self._store(documents, vectors)
        self._read_words()
        self.store.save_local(str(self.folder))
        with (self.folder / "bm25.pickle").open("wb") as target:
            pickle.dump(self.bm25.vectorizer, target)

    def _store(self, documents: list[Document], vectors: Floats) -> None:
        metas = [{"id": item["id"], **{field: item["meta"][field] for field in FIELDS}} for item in documents]
        texts = zip((whole(item) for item in documents), vectors.tolist(), strict=True)
        self.store.add_embeddings(texts, metas, [item["id"] for item in documents])

    def _documents(self) -> list[core.Document]:
        kept = self.store.docstore._dict
        return [kept[self.store.index_to_docstore_id[at]] for at in range(len(kept))]

    def _read_words(self) -> None:
        """Build BM25 again from all documents: it takes no additions."""
        self.bm25 = BM25Retriever.from_documents(self._documents(), preprocess_func=words, k=self.setting["depth"])

    def open(self) -> None:
        self.store = FAISS.load_local(str(self.folder), self.given, allow_dangerous_deserialization=True)
        with (self.folder / "bm25.pickle").open("rb") as source:
            vectorizer = pickle.load(source)
        self.bm25 = BM25Retriever(
            vectorizer=vectorizer, docs=self._documents(), preprocess_func=words, k=self.setting["depth"]
        )

    def search(self, text: str, vector: Floats, where: dict[str, str], k: int) -> list[tuple[str, str]]:
        """Search; with a filter the store fetches more and drops what does not match, and so do we for BM25."""
        self.given.of.vector = vector
        depth = self.setting["fetch"] if where else self.setting["depth"]
        asked = {"k": self.setting["depth"]} | ({"filter": dict(where), "fetch_k": depth} if where else {})
        self.bm25.k = depth
        both = EnsembleRetriever(retrievers=[self.bm25, self.store.as_retriever(search_kwargs=asked)], id_key="id")
        found = [item for item in both.invoke(text) if all(item.metadata[f] == v for f, v in where.items())]
        return [(item.metadata["id"], item.page_content) for item in found[:k]]

    def dense(self, vector: Floats, where: dict[str, str], k: int) -> list[str]:
        asked = {"filter": dict(where), "fetch_k": self.setting["fetch"]} if where else {}
        found = self.store.similarity_search_by_vector(vector.tolist(), k=k, **asked)
        return [item.metadata["id"] for item in found]

    def write(self, document: Document, vector: Floats) -> None:
        self._store([document], vector[None])
        self._read_words()

    def handle(self) -> Engine:
        return self

    def close(self) -> None:
        pass
