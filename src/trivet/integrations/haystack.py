"""Haystack: a document store and a hybrid retriever.

A document of Haystack is one of trivet with the same id, text and metadata. An embedding is stored in a collection of
``vectors:DIM`` and not returned. Blobs and sparse embeddings are refused: trivet indexes text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from trivet.engine import Engine
from trivet.errors import InputError, NotFoundError
from trivet.filters import Filter, Value, flatten, values_of
from trivet.integrations.engine import (
    EVERY_DOCUMENT,
    by_ids,
    in_thread,
    lenient,
    missing_extra,
    open_engine,
    search,
)
from trivet.integrations.haystack_filters import translated
from trivet.types import Document as Stored

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.document_stores.errors import DuplicateDocumentError
    from haystack.document_stores.types import DuplicatePolicy, FilterPolicy, apply_filter_policy
    from haystack.errors import FilterError
    from haystack.utils import Secret
except ImportError as error:
    raise missing_extra("haystack", error) from error

T = TypeVar("T")
_TYPES = {bool: "boolean", int: "int", float: "float"}


class TrivetDocumentStore:
    """A collection as a document store.

    Args:
        store: The path or address of a store, a ``Secret`` that holds it, or an open engine.
        collection: The name of the collection.
        embedder: The model of a new collection, if not the built-in one: ``"vectors:768"`` for the embeddings of a
            pipeline.
    """

    def __init__(
        self, store: str | Path | Secret | Engine, collection: str = "default", embedder: str | None = None
    ) -> None:
        address = store.resolve_value() if isinstance(store, Secret) else store
        if address is None:
            raise InputError("store: the secret is empty; set its environment variable to the path of a store")
        self.engine = open_engine(address, collection, embedder)
        self._secret = store if isinstance(store, Secret) else None
        self._embedder = embedder

    def to_dict(self) -> dict[str, Any]:
        """Return the store for a pipeline file; a password is in no such file."""
        if self._secret is None and self.engine.url != self.engine.path:
            raise ValueError("store: the address holds a password; give it as Secret.from_env_var('TRIVET_STORE')")
        address = self._secret.to_dict() if self._secret else self.engine.path
        return default_to_dict(self, store=address, collection=self.engine.name, embedder=self._embedder)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TrivetDocumentStore:
        """Open the store that ``to_dict`` described."""
        given = dict(data["init_parameters"])
        if isinstance(given["store"], dict):
            given["store"] = Secret.from_dict(given["store"])
        return default_from_dict(cls, {**data, "init_parameters": given})

    # --- writing ------------------------------------------------------------------------------------------------------

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Add documents and return how many were written; NONE is FAIL: nothing is written if an id exists."""
        if isinstance(documents, str) or not isinstance(documents, Iterable):
            raise InputError(f"documents: {documents!r} is not a list of documents")
        given = list(documents)
        if strange := [each for each in given if not isinstance(each, Document)]:
            raise InputError(f"documents: {strange[0]!r} is not a Document of Haystack")
        own_vectors = (self.engine.stats().model or "").startswith("vectors/")
        rows = {document.id: _row(document, own_vectors) for document in given}
        if policy != DuplicatePolicy.OVERWRITE:
            known = set(by_ids(self.engine, rows))
            twice = known | {id for id, count in Counter(each.id for each in given).items() if count > 1}
            if twice and policy != DuplicatePolicy.SKIP:
                way = "write with DuplicatePolicy.OVERWRITE or SKIP"
                raise DuplicateDocumentError(f"documents: id {min(twice)!r} exists or is given twice; {way}")
            rows = {id: row for id, row in rows.items() if id not in known}
        self.engine.add(rows.values())
        return len(given) if policy == DuplicatePolicy.OVERWRITE else len(rows)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents by id; an id that does not exist is skipped."""
        self.engine.delete(document_ids)

    def delete_all_documents(self) -> None:
        """Delete every document."""
        self.engine.delete(where=EVERY_DOCUMENT)

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Delete the documents that match; return how many."""
        return self._run(_needed(filters), lambda where: self.engine.delete(where=where))

    def update_by_filter(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """Merge metadata into the documents that match; return how many. A value of None removes a key."""
        changed = 0
        for id in [document.id for document in self._matching(_needed(filters))]:
            with suppress(NotFoundError):  # deleted since it was found
                self.engine.patch(id, meta=meta)
                changed += 1
        return changed

    # --- reading ------------------------------------------------------------------------------------------------------

    def count_documents(self) -> int:
        """Return the number of documents."""
        return self.engine.stats().documents

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Return the documents that match, in the order in which they were first written."""
        return [_document(document) for document in self._matching(filters)]

    def search(
        self,
        query: str,
        *,
        query_embedding: list[float] | None = None,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> list[Document]:
        """Return the best documents of a hybrid search; the score is the relevance, from 0 to 1."""
        settings = {"vector": query_embedding, **(options or {})}
        hits = self._run(filters, lambda where: search(self.engine, query, top_k, where, settings))
        return [_document(hit.document, hit.relevance) for hit in hits]

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        """Return the number of documents that match."""
        return sum(1 for _ in self._matching(filters))

    def count_unique_metadata_by_filter(self, filters: dict[str, Any], metadata_fields: list[str]) -> dict[str, int]:
        """Return how many different values each field has among the documents that match."""
        names = [field.removeprefix("meta.") for field in metadata_fields]
        found = list(self._matching(filters))
        return {name: len(_distinct(found, name)) for name in names}

    def get_metadata_fields_info(self) -> dict[str, dict[str, str]]:
        """Return the type of each field of the metadata: keyword, int, float or boolean."""
        pairs = (pair for document in self.engine.documents() for pair in flatten(document.meta))
        return {name: {"type": _TYPES.get(type(value), "keyword")} for name, value in pairs}

    def get_metadata_field_min_max(self, metadata_field: str) -> dict[str, Any]:
        """Return the least and the greatest value of a field; None for both without one order of its values."""
        values = list(_distinct(self.engine.documents(), metadata_field.removeprefix("meta.")).values())
        if not values or len({isinstance(value, str) for value in values}) > 1:
            return {"min": None, "max": None}
        return {"min": min(values), "max": max(values)}

    def get_metadata_field_unique_values(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: dict[str, Any] | None = None,
    ) -> tuple[list[Any], int]:
        """Return a page of the values of a field that contain the term, in order, and how many there are."""
        found = _distinct(self._matching(filters), metadata_field.removeprefix("meta."))
        kept = [key for key in found if (search_term or "").lower() in key[1].lower()]
        ordered = sorted(kept, key=lambda key: (key[1], key[0]))
        return [found[key] for key in ordered[from_ : from_ + size]], len(ordered)

    def _matching(self, filters: dict[str, Any] | None) -> Iterator[Stored]:
        return self._run(filters, self.engine.documents)

    def _run(self, filters: dict[str, Any] | None, call: Callable[[Filter | None], T]) -> T:
        where = translated(filters)
        return call(None) if where is None else lenient(self.engine, where, call)

    write_documents_async = in_thread(write_documents)
    delete_documents_async = in_thread(delete_documents)
    delete_all_documents_async = in_thread(delete_all_documents)
    delete_by_filter_async = in_thread(delete_by_filter)
    update_by_filter_async = in_thread(update_by_filter)
    count_documents_async = in_thread(count_documents)
    filter_documents_async = in_thread(filter_documents)
    search_async = in_thread(search)
    count_documents_by_filter_async = in_thread(count_documents_by_filter)
    count_unique_metadata_by_filter_async = in_thread(count_unique_metadata_by_filter)
    get_metadata_fields_info_async = in_thread(get_metadata_fields_info)
    get_metadata_field_min_max_async = in_thread(get_metadata_field_min_max)
    get_metadata_field_unique_values_async = in_thread(get_metadata_field_unique_values)


@component
class TrivetHybridRetriever:
    """Retrieves documents by hybrid search.

    Args:
        document_store: The store.
        top_k: How many documents; by default as many as the settings of the collection say.
        filters: A filter of Haystack for every run.
        filter_policy: Whether the filters of a run replace these or are merged with them.
        options: Settings of the search, such as ``{"alpha": 0.3}``.
    """

    def __init__(
        self,
        document_store: TrivetDocumentStore,
        top_k: int | None = None,
        filters: dict[str, Any] | None = None,
        filter_policy: str | FilterPolicy = FilterPolicy.REPLACE,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.document_store, self.top_k, self.filters, self.options = document_store, top_k, filters, options
        self.filter_policy = FilterPolicy.from_str(filter_policy) if isinstance(filter_policy, str) else filter_policy

    def to_dict(self) -> dict[str, Any]:
        """Return the component for a pipeline file."""
        return default_to_dict(
            self,
            document_store=self.document_store.to_dict(),
            top_k=self.top_k,
            filters=self.filters,
            filter_policy=self.filter_policy.value,
            options=self.options,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TrivetHybridRetriever:
        """Return the component that ``to_dict`` described."""
        store = data["init_parameters"]["document_store"]
        if isinstance(store, dict):
            store = TrivetDocumentStore.from_dict(store)
        return default_from_dict(cls, {**data, "init_parameters": {**data["init_parameters"], "document_store": store}})

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        query_embedding: list[float] | None = None,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
    ) -> dict[str, list[Document]]:
        """Return the documents for a query; an embedding of it is for a collection of ``vectors:DIM``."""
        found = self.document_store.search(
            query,
            query_embedding=query_embedding,
            filters=apply_filter_policy(self.filter_policy, self.filters, filters),
            top_k=self.top_k if top_k is None else top_k,
            options=self.options,
        )
        return {"documents": found}

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query: str,
        query_embedding: list[float] | None = None,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
    ) -> dict[str, list[Document]]:
        """Return the same from a thread."""
        return await in_thread(self.run)(query, query_embedding, filters, top_k)


def _needed(filters: dict[str, Any]) -> dict[str, Any]:
    if not filters:
        raise FilterError("filters: it is empty, which every document matches; name a condition")
    return filters


def _row(document: Document, own_vectors: bool) -> dict[str, Any]:
    """Return the fields of a document in trivet; refuse what would be lost."""
    for name in ("blob", "sparse_embedding"):
        if getattr(document, name) is not None:
            raise InputError(f"document {document.id!r}: {name} cannot be stored; trivet indexes text")
    if document.embedding is not None and not own_vectors:
        made = "the collection embeds its texts itself"
        way = f"leave it out, or open a new collection with embedder='vectors:{len(document.embedding)}'"
        raise InputError(f"document {document.id!r}: embedding given, but {made}; {way}")
    return {"id": document.id, "text": document.content, "meta": document.meta, "vector": document.embedding}


def _document(document: Stored, score: float | None = None) -> Document:
    return Document(id=document.id, content=document.text, meta=dict(document.meta), score=score)


def _distinct(documents: Iterable[Stored], field: str) -> dict[tuple[str, str], Value]:
    """Return the values of a field by their type and text: 1, 1.0, True and "1" are four."""
    values = (value for document in documents for value in values_of(document, f"meta.{field}"))
    return {(type(value).__name__, str(value)): value for value in values}
