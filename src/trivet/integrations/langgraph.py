"""LangGraph: long-term memory in a trivet collection.

An item is a document of the kind ``item``. Its namespace, its key and its value are metadata: ``within`` lists the
prefixes of the namespace, and ``shapes`` says where the value holds a list or a mapping, because a filter of LangGraph
compares those as a whole and one of trivet looks inside.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from trivet.engine import Engine
from trivet.errors import InputError, NotFoundError
from trivet.filters import And, Eq, Exists, Filter, Not, Range
from trivet.integrations.embeddings import FrameworkEmbedder
from trivet.integrations.engine import lenient, missing_extra, open_engine, search
from trivet.types import Document

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        IndexConfig,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        ensure_embeddings,
        get_text_at_path,
    )
except ImportError as error:
    raise missing_extra("langgraph", error) from error

KIND = "item"
_RANGES = {"$gt": "gt", "$gte": "gte", "$lt": "lt", "$lte": "lte"}

Namespace = tuple[str, ...]


class TrivetStore(BaseStore):
    """A store of LangGraph whose search is hybrid, within a namespace and a filter.

    Items can be searched without an ``index``: the built-in model embeds the whole value. Expired items are hidden at
    once and erased by trivet.

    Args:
        store: The path or address of a store, or an open engine.
        index: LangGraph's configuration: ``embed`` is the model of a new collection, ``fields`` say which parts of a
            value are searched.
        ttl: LangGraph's configuration of the time to live.
        collection: The name of the collection.
    """

    supports_ttl = True

    def __init__(
        self,
        store: str | Path | Engine,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        collection: str = "default",
    ) -> None:
        config: Mapping[str, Any] = index or {}
        self.engine = open_engine(store, collection, _embedder(config))
        self.fields: list[str] = config.get("fields") or ["$"]
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations and return their results; what is read is the state before the writes of the same batch."""
        given = list(ops)
        results = [self._read(op) for op in given]
        self._write({(op.namespace, op.key): op for op in given if isinstance(op, PutOp)}.values())
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                return self._get(op)
            case SearchOp():
                return self._search(op)
            case ListNamespacesOp():
                return self._namespaces(op)
            case PutOp():
                return None
        raise InputError(f"batch: {op!r} is not an operation of langgraph.store.base")

    # --- writing ------------------------------------------------------------------------------------------------------

    def _write(self, puts: Iterable[PutOp]) -> None:
        new = [self._document(op) for op in puts if op.value is not None]
        gone = [_id(op.namespace, op.key) for op in puts if op.value is None]
        if new:
            self.engine.add(new)
        self.engine.delete(gone)

    def _document(self, op: PutOp) -> dict[str, Any]:
        if not isinstance(op.value, Mapping | None):
            raise InputError(f"value of {op.key!r} in {op.namespace}: {type(op.value).__name__} is not a mapping")
        if op.ttl is not None and op.ttl <= 0:
            raise InputError(f"ttl of {op.key!r} in {op.namespace}: {op.ttl!r} is not a number of minutes above 0")
        value = dict(op.value or {})
        paths = [] if op.index is False else self.fields if op.index is None else op.index
        try:
            text = "\n\n".join(part for path in paths for part in get_text_at_path(value, path))
            shapes = dict(_shapes(value))
        except TypeError as error:  # of the JSON encoder
            raise InputError(f"value of {op.key!r} in {op.namespace}: {error}; give text, numbers, lists …") from None
        meta = {
            "namespace": list(op.namespace),
            "within": [_path(op.namespace[:depth]) for depth in range(1, len(op.namespace) + 1)],
            "key": op.key,
            "value": value,
            "shapes": shapes,
            "searchable": bool(text.strip()),
            "written": datetime.now(UTC),
            "ttl": op.ttl,  # minutes
        }
        return {
            "id": _id(op.namespace, op.key),
            "text": text,
            "title": "" if text.strip() else op.key,  # a document has a text or a title
            "kind": KIND,
            "meta": meta,
            "expires": None if op.ttl is None else timedelta(minutes=op.ttl),
        }

    # --- reading ------------------------------------------------------------------------------------------------------

    def _get(self, op: GetOp) -> Item | None:
        document = self.engine.get(_id(op.namespace, op.key))
        if document is None or document.kind != KIND:
            return None
        self._refresh([document], op.refresh_ttl)
        return Item(**_fields(document))

    def _search(self, op: SearchOp) -> list[SearchItem]:
        if op.limit < 1:
            return []
        conditions = [*_inside(op.namespace_prefix), *_conditions("", op.filter or {})]
        found = self._ranked(op, conditions) if op.query else self._listed(op.offset, op.limit, conditions)
        self._refresh([document for document, _ in found], op.refresh_ttl)
        return [SearchItem(**_fields(document), score=score) for document, score in found]

    def _ranked(self, op: SearchOp, conditions: list[Filter]) -> list[tuple[Document, float | None]]:
        """Return the best items; those that are not searchable fill the page, as in LangGraph's own stores."""
        searchable = Eq("searchable", True)
        copies_too = [step for step in self.engine.settings.rerankers if step.name != "dedup"]
        options = {"offset": op.offset, "rerankers": copies_too}
        hits = lenient(
            self.engine,
            And((*conditions, searchable)),
            lambda where: search(self.engine, op.query or "", op.limit, where, options),
        )
        found: list[tuple[Document, float | None]] = [(hit.document, hit.relevance) for hit in hits]
        return found + self._listed(0, op.limit - len(found), [*conditions, Not(searchable)])

    def _listed(self, offset: int, limit: int, conditions: list[Filter]) -> list[tuple[Document, float | None]]:
        found = lenient(self.engine, And(tuple(conditions)), self.engine.documents)
        return [(document, None) for document in islice(found, offset, offset + limit)]

    def _refresh(self, documents: Sequence[Document], wanted: bool) -> None:
        """Let the time to live of these items begin again."""
        for document in documents:
            if wanted and document.meta.get("ttl") is not None:
                with suppress(NotFoundError):  # deleted since it was read
                    self.engine.patch(document.id, expires=timedelta(minutes=document.meta["ttl"]))

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        matches = op.match_conditions or ()
        where = And((Eq("kind", KIND), *_narrowed(matches)))
        items = lenient(self.engine, where, self.engine.documents)
        found = {tuple(document.meta["namespace"]) for document in items}
        kept = {each[: op.max_depth] for each in found if all(_matches(condition, each) for condition in matches)}
        return sorted(kept)[op.offset : op.offset + op.limit]


def _embedder(config: Mapping[str, Any]) -> FrameworkEmbedder | None:
    """Return the embedder of an index configuration; None for the collection's own model."""
    if config.get("embed") is None:
        return None
    model = ensure_embeddings(config["embed"])
    made = FrameworkEmbedder(
        "langchain", model, lambda texts: [model.embed_query(text) for text in texts], model.embed_documents
    )
    if "dims" in config and made.dim != config["dims"]:
        raise InputError(f"index: dims is {config['dims']}, and the vectors of {made.id!r} have {made.dim}")
    return made


# --- names ------------------------------------------------------------------------------------------------------------


def _path(labels: Iterable[str]) -> str:
    """Return labels as a path; a slash inside a label is escaped, so that no two namespaces have the same path."""
    return "/".join(label.replace("%", "%25").replace("/", "%2F") for label in labels)


def _id(namespace: Namespace, key: str) -> str:
    return _path((*namespace, key))


def _fields(document: Document) -> dict[str, Any]:
    """Return the fields of the item that a document holds."""
    return {
        "namespace": tuple(document.meta["namespace"]),
        "key": document.meta["key"],
        "value": dict(document.meta["value"]),
        "created_at": document.created,
        "updated_at": datetime.fromisoformat(document.meta["written"]),
    }


def _shapes(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path of every list, with the list as JSON, and of every mapping."""
    for key, inner in value.items():
        if isinstance(inner, list | tuple):
            yield f"{prefix}{key}", _json(inner)
        elif isinstance(inner, Mapping):
            yield f"{prefix}{key}", "{}"
            yield from _shapes(inner, f"{prefix}{key}.")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


# --- conditions -------------------------------------------------------------------------------------------------------


def _inside(prefix: Namespace) -> list[Filter]:
    return [Eq("kind", KIND), *([Eq("within", _path(prefix))] if prefix else [])]


def _conditions(path: str, wanted: Mapping[str, Any]) -> Iterator[Filter]:
    """Yield the conditions of a LangGraph filter in the filter language of trivet."""
    for key, value in wanted.items():
        field = f"{path}{key}"
        if not isinstance(value, Mapping):
            yield _equal(field, value)
        elif any(str(name).startswith("$") for name in value):
            yield from (_operator(field, name, operand) for name, operand in value.items())
        else:
            yield Eq(f"shapes.{field}", "{}")
            yield from _conditions(f"{field}.", value)


def _equal(field: str, value: Any) -> Filter:
    whole = Exists(f"shapes.{field}")
    if value is None:
        return And((Not(Exists(f"value.{field}")), Not(whole)))
    if isinstance(value, list | tuple):
        return Eq(f"shapes.{field}", _json(value))
    return And((Eq(f"value.{field}", value), Not(whole)))


def _operator(field: str, name: str, operand: Any) -> Filter:
    if name in _RANGES:
        return Range(f"value.{field}", **{_RANGES[name]: operand})
    if name not in ("$eq", "$ne"):
        raise InputError(f"filter: unknown operator {name!r} on {field!r}; known: $eq, $ne, {', '.join(_RANGES)}")
    equal = _equal(field, operand)
    return equal if name == "$eq" else Not(equal)


def _narrowed(matches: Sequence[MatchCondition]) -> list[Filter]:
    """Return the conditions on a prefix as a filter, as far as there is no wildcard."""
    prefixes = [match.path for match in matches if match.match_type == "prefix" and match.path]
    return [Eq("within", _path(path)) for path in prefixes if "*" not in path]


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    if len(namespace) < len(condition.path):
        return False
    ends = {"prefix": namespace, "suffix": namespace[len(namespace) - len(condition.path) :]}
    return all(
        wanted in ("*", label) for wanted, label in zip(condition.path, ends[condition.match_type], strict=False)
    )
