"""LlamaIndex: a retriever and a vector store over a trivet collection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from trivet.engine import Engine
from trivet.errors import InputError
from trivet.filters import And, Eq, Filter, In
from trivet.integrations.engine import (
    EVERY_DOCUMENT,
    lenient,
    missing_extra,
    open_engine,
    search,
)
from trivet.integrations.llama_index_filters import translated
from trivet.types import Document, Hit

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
    from llama_index.core.vector_stores.types import (
        BasePydanticVectorStore,
        MetadataFilters,
        VectorStoreQuery,
        VectorStoreQueryMode,
        VectorStoreQueryResult,
    )
    from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict
except ImportError as error:
    raise missing_extra("llama-index", error) from error

T = TypeVar("T")

#: The settings of a search in each mode. ``alpha=0`` is by words alone; ``default`` is the hybrid search of trivet.
_MODES: dict[VectorStoreQueryMode, dict[str, Any]] = {
    VectorStoreQueryMode.DEFAULT: {},
    VectorStoreQueryMode.HYBRID: {},
    VectorStoreQueryMode.TEXT_SEARCH: {"alpha": 0.0},
    VectorStoreQueryMode.SPARSE: {"alpha": 0.0},
    VectorStoreQueryMode.MMR: {},
}
_MMR = 0.5  # the threshold that LlamaIndex takes where none is given


class TrivetRetriever(BaseRetriever):
    """Retrieves the best passages of a collection by hybrid search; the score is the relevance, from 0 to 1.

    Args:
        engine: The collection.
        similarity_top_k: How many; by default as many as the settings of the collection say.
        where: A filter of trivet.
        options: Settings of the search, such as ``{"alpha": 0.3}``.
    """

    def __init__(
        self,
        engine: Engine,
        similarity_top_k: int | None = None,
        where: Any = None,
        options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.engine, self.similarity_top_k, self.where, self.options = engine, similarity_top_k, where, options or {}
        super().__init__(**kwargs)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        vector = {} if query_bundle.embedding is None else {"vector": query_bundle.embedding}
        options = {**vector, **self.options}
        hits = search(self.engine, query_bundle.query_str, self.similarity_top_k, self.where, options)
        return [NodeWithScore(node=_passage(hit), score=hit.relevance) for hit in hits]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


class TrivetVectorStore(BasePydanticVectorStore):
    """A collection as a vector store whose queries are hybrid: by words, by meaning and by connections.

    A collection of ``vectors:DIM`` takes the embeddings of the nodes and of the queries. Any other embeds the texts
    itself: embeddings are left aside then, and an index needs none (``embed_model=MockEmbedding(embed_dim=1)``).

    Args:
        store: The path or address of a store, or an open engine.
        collection: The name of the collection.
        embedder: The model of a new collection, if not the built-in one.
    """

    stores_text: bool = True
    is_embedding_query: bool = False
    _engine: Engine = PrivateAttr()

    def __init__(
        self, store: str | Path | Engine, collection: str = "default", embedder: str | None = None, **kwargs: Any
    ) -> None:
        engine = open_engine(store, collection, embedder)
        super().__init__(is_embedding_query=(engine.stats().model or "").startswith("vectors/"), **kwargs)
        self._engine = engine

    @classmethod
    def class_name(cls) -> str:
        """The name of the class in a saved index."""
        return "TrivetVectorStore"

    @property
    def client(self) -> Engine:
        """The engine of the collection."""
        return self._engine

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes, or replace those whose id exists; return the ids."""
        self._engine.add(self._row(node) for node in nodes)
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a document."""
        self._run(Eq("meta.ref_doc_id", ref_doc_id), lambda where: self._engine.delete(where=where))

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete nodes by id, by a filter, or by both."""
        chosen = _where(node_ids, filters)
        if chosen is None:
            raise InputError("delete_nodes: give node_ids or filters; `clear` deletes every node")
        self._run(chosen, lambda where: self._engine.delete(where=where))

    def clear(self) -> None:
        """Delete every node."""
        self._engine.delete(where=EVERY_DOCUMENT)

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """Return nodes by id, by a filter, by both, or all of them; in the order in which they were added."""
        return [_node(document) for document in self._run(_where(node_ids, filters), self._engine.documents)]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Return the best nodes with their relevance; other keywords are settings of the search."""
        if query.mode not in _MODES:
            known = ", ".join(mode.value for mode in _MODES)
            raise InputError(f"mode: {query.mode.value!r} is no mode of trivet; known: {known}")
        options = {**_MODES[query.mode], **self._settings(query), **kwargs}
        # the index of a store that keeps the texts gives an empty list of ids: any node may be found
        chosen = _where(query.node_ids or None, query.filters, query.doc_ids or None)
        text, limit = query.query_str or "", _limit(query)
        hits = self._run(chosen, lambda where: search(self._engine, text, limit, where, options))
        return VectorStoreQueryResult(
            nodes=[_node(hit.document) for hit in hits],
            similarities=[hit.relevance for hit in hits],
            ids=[hit.id for hit in hits],
        )

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Run ``add`` in a thread, as the methods below do with theirs."""
        return await asyncio.to_thread(self.add, nodes, **kwargs)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        await asyncio.to_thread(self.delete, ref_doc_id, **delete_kwargs)

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        await asyncio.to_thread(self.delete_nodes, node_ids, filters, **delete_kwargs)

    async def aclear(self) -> None:
        await asyncio.to_thread(self.clear)

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        return await asyncio.to_thread(self.get_nodes, node_ids, filters)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        return await asyncio.to_thread(self.query, query, **kwargs)

    def _settings(self, query: VectorStoreQuery) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.is_embedding_query and query.query_embedding is not None:
            found["vector"] = query.query_embedding
        if query.mode == VectorStoreQueryMode.HYBRID and query.alpha is not None:
            found["alpha"] = query.alpha
        if query.mode == VectorStoreQueryMode.MMR:
            found["rerankers"] = [
                {"name": "mmr", "weight": _MMR if query.mmr_threshold is None else query.mmr_threshold}
            ]
        return found

    def _row(self, node: BaseNode) -> dict[str, Any]:
        """Return the node as a document: the metadata holds what LlamaIndex needs to build it again."""
        return {
            "id": node.node_id,
            "text": node.get_content(metadata_mode=MetadataMode.NONE),
            "meta": node_to_metadata_dict(node, remove_text=True),
            "vector": node.embedding if self.is_embedding_query else None,
        }

    def _run(self, where: Filter | None, call: Callable[[Filter | None], T]) -> T:
        return call(None) if where is None else lenient(self._engine, where, call)


def _where(ids: list[str] | None, filters: MetadataFilters | None, documents: list[str] | None = None) -> Filter | None:
    """Return ids, documents and a filter as one filter; None if nothing is given."""
    given = (
        None if ids is None else In("id", tuple(ids)),
        None if documents is None else In("meta.ref_doc_id", tuple(documents)),
        translated(filters),
    )
    parts = tuple(each for each in given if each is not None)
    return And(parts) if parts else None


def _limit(query: VectorStoreQuery) -> int:
    """Return how many nodes a query wants in its mode."""
    own = {VectorStoreQueryMode.HYBRID: query.hybrid_top_k, VectorStoreQueryMode.SPARSE: query.sparse_top_k}
    return own.get(query.mode) or query.similarity_top_k


def _node(document: Document) -> BaseNode:
    """Return the node of a document; one that trivet was given in another way becomes a text node."""
    if "_node_content" in document.meta:
        return metadata_dict_to_node(dict(document.meta), text=document.text)
    return TextNode(id_=document.id, text=document.text, metadata=_metadata(document))


def _passage(hit: Hit) -> BaseNode:
    if "_node_content" in hit.document.meta:
        return _node(hit.document)
    start, end = hit.passage.start, hit.passage.end
    return TextNode(id_=hit.id, text=hit.text, metadata=_metadata(hit.document), start_char_idx=start, end_char_idx=end)


def _metadata(document: Document) -> dict[str, Any]:
    return {**({"title": document.title} if document.title else {}), **document.meta}
