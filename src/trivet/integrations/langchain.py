"""LangChain: a retriever and a vector store over a trivet collection.

A filter is one of trivet (docs/how-to/filters.md). Every other keyword of a search is a setting of it, such as
``alpha=0.3``. The asynchronous methods are those of LangChain's base classes: they call these in a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

from trivet.engine import Engine
from trivet.errors import InputError
from trivet.integrations.embeddings import FrameworkEmbedder
from trivet.integrations.engine import EVERY_DOCUMENT, by_ids, missing_extra, open_engine, search
from trivet.types import Document as Stored
from trivet.types import Hit, Results

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore
    from pydantic import ConfigDict, Field
except ImportError as error:
    raise missing_extra("langchain", error) from error


def embedder_of(embedding: Embeddings | None) -> FrameworkEmbedder | None:
    """Return the embedder that calls a LangChain embedding object; None for the collection's own model."""
    if embedding is None:
        return None
    return FrameworkEmbedder(
        "langchain",
        embedding,
        lambda texts: [embedding.embed_query(text) for text in texts],
        lambda texts: embedding.embed_documents(texts),
    )


class TrivetRetriever(BaseRetriever):
    """Retrieves the best passages of a collection by hybrid search.

    The page content is the passage. The metadata is that of the document, and under ``trivet`` what the search says
    of the hit: relevance, confidence, score, title, kind, and where in the document the passage is.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    engine: Engine
    k: int | None = None  #: how many passages; by default as many as the settings of the collection say
    where: Any = None
    options: dict[str, Any] = Field(default_factory=dict)  #: settings of the search

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None, where: Any = None
    ) -> list[Document]:
        given = [each for each in (self.where, where) if each is not None]
        results = search(self.engine, query, self.k if k is None else k, given or None, self.options)
        return [_passage(hit) for hit in results]


class TrivetVectorStore(VectorStore):
    """A collection as a vector store whose similarity search is hybrid: by words, by meaning and by connections.

    Args:
        store: The path or address of a store, or an open engine.
        embedding: The model of a new collection, if not the built-in one.
        collection: The name of the collection.
    """

    def __init__(
        self,
        store: str | Path | Engine = ":memory:",
        embedding: Embeddings | None = None,
        *,
        collection: str = "default",
    ) -> None:
        self.engine = open_engine(store, collection, embedder_of(embedding))
        self._embedding = embedding

    @property
    def embeddings(self) -> Embeddings | None:
        """The embedding object, if the caller gave one."""
        return self._embedding

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        store: str | Path | Engine = ":memory:",
        collection: str = "default",
        **kwargs: Any,
    ) -> TrivetVectorStore:
        """Return a store with these texts; ``store`` and ``collection`` say where."""
        made = cls(store, embedding, collection=collection)
        made.add_texts(texts, metadatas, ids=ids, **kwargs)
        return made

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts, or replace those whose id exists; return the ids. A missing id is made."""
        if strange := set(kwargs) - {"batch_size"}:  # LangChain's indexing gives a batch size; batches need none here
            raise InputError(f"add_texts: unknown argument {min(strange)!r}; known: metadatas, ids")
        given = list(texts)
        for name, values in (("metadatas", metadatas), ("ids", ids)):
            if values and len(values) != len(given):
                raise InputError(f"{name}: {len(values)} for {len(given)} texts; give one for each text")
        rows = zip(given, metadatas or repeat({}), ids or repeat(None), strict=False)
        return list(self.engine.add({"text": text, "meta": meta, "id": id} for text, meta, id in rows).ids)

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete documents by id, by a filter ``where``, or all of them without either."""
        if ids is not None:
            self.engine.delete(ids)
        else:
            self.engine.delete(where=kwargs.get("where", EVERY_DOCUMENT))
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids, in this order; an id that does not exist is left out."""
        found = by_ids(self.engine, ids)
        return [_whole(found[id]) for id in dict.fromkeys(ids) if id in found]

    def similarity_search(self, query: str, k: int = 4, filter: Any = None, **kwargs: Any) -> list[Document]:
        """Return the best documents for a query."""
        return [_whole(hit.document) for hit in self._search(query, k, filter, kwargs)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: Any = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Return the best documents with the scores that order them; higher is better."""
        return [(_whole(hit.document), hit.score) for hit in self._search(query, k, filter, kwargs)]

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, filter: Any = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        return [(_whole(hit.document), hit.relevance) for hit in self._search(query, k, filter, kwargs)]

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, filter: Any = None, **kwargs: Any
    ) -> list[Document]:
        """Return the documents that are nearest to a vector of the collection's model."""
        return [_whole(hit.document) for hit in self._search("", k, filter, {**kwargs, "vector": embedding})]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Any = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return documents that are relevant and differ from each other, by trivet's reranker ``mmr``."""
        steps = [{"name": "mmr", "weight": lambda_mult}]
        return self.similarity_search(query, k, filter, **{"rerankers": steps, "pool": max(k, fetch_k), **kwargs})

    def _search(self, query: str, k: int, where: Any, options: dict[str, Any]) -> Results:
        return search(self.engine, query, k, where, options)


def _whole(document: Stored) -> Document:
    return Document(id=document.id, page_content=document.text, metadata=dict(document.meta))


def _passage(hit: Hit) -> Document:
    about = {
        "relevance": hit.relevance,
        "confidence": hit.confidence,
        "score": hit.score,
        "title": hit.document.title,
        "kind": hit.document.kind,
        "start": hit.passage.start,
        "end": hit.passage.end,
    }
    return Document(id=hit.id, page_content=hit.text, metadata={**hit.document.meta, "trivet": about})
