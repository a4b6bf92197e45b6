"""A collection bound to a filter: what a caller sees who may see some of the documents only.

``Scoped`` is a collection (``contract.py``) that adds its filter to everything that is read and checks everything that
is written against it. There is no way around it: a part or method that it does not define is refused, and a test fails
when the contract has a method that ``Scoped`` neither defines nor refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from trivet.errors import InputError, NotAllowedError, NotFoundError, TakenError
from trivet.filters import (
    And,
    Contains,
    Eq,
    Filter,
    In,
    Or,
    Prefix,
    Range,
    both,
    fields_of,
    matches,
    satisfies,
    split_field,
    values_of,
)
from trivet.stores.contract import (
    Adjacent,
    Collection,
    Counts,
    Documents,
    FeedbackLog,
    Filters,
    Found,
    GraphIndex,
    LexicalIndex,
    Links,
    Model,
    Prepared,
    State,
    TrigramIndex,
    VectorIndex,
    Written,
)
from trivet.types import Document, Facet, Feedback, Link, Period, Resolutions, Successions

if TYPE_CHECKING:
    from trivet.stores.contract import LegScope, Scope, Span, Store
    from trivet.text.analysis import Analyzer
    from trivet.types import Vector

Visible = Callable[[Sequence[str], Filter], set[str]]


def allowed(document: Document, within: Filter | None) -> bool:
    """Tell whether the filter allows this document; None allows every document."""
    return within is None or matches(within, document)


def ends(links: Iterable[Link]) -> list[str]:
    """Return the ids that the links connect."""
    return list(dict.fromkeys(end for link in links for end in (link.source, link.target)))


def check_ends(links: Iterable[Link], seen: set[str], name: str) -> None:
    """Refuse a link from or to a document that is not among those that may be seen."""
    for link in links:
        for side, id in (("source", link.source), ("target", link.target)):
            if id not in seen:
                raise NotFoundError(f"link {side}: document {id!r} not found in collection {name!r}")


def check_within(batch: Sequence[Prepared], known: Iterable[str], visible: Visible, within: Filter) -> None:
    """Refuse to replace a document that the filter hides, or to link to one; ``known`` are the ids that are taken."""
    taken = list(known)
    if hidden := sorted(set(taken) - visible(taken, within)):
        raise TakenError(f"id: {hidden[0]!r} cannot be used here; choose another, or leave it out to have one made")
    own = {item.document.id for item in batch}
    targets = list(dict.fromkeys(link.target for item in batch for link in item.links or () if link.target not in own))
    if missing := sorted(set(targets) - visible(targets, within)):
        raise InputError(f"link: document {missing[0]!r} not found; add it first")


def defaults(within: Filter) -> dict[str, Any]:
    """Return the fields of a document that the filter fixes to one value: what is set where it is absent."""
    match within:
        case And(parts):
            return {field: value for part in parts for field, value in defaults(part).items()}
        case Eq(field, value):
            return {field: value}
        case In(field, values) if values and len({str(value).lower() for value in values}) == 1:
            return {field: values[0]}  # `year=2020` on a command line: the number, or else the text
    return {}


def holds(within: Filter, document: Document) -> bool:
    """Tell whether every value of the document's fields satisfies the filter, not just one of several.

    ``matches`` asks for one: a document with the tenants ``["alice", "bob"]`` is seen by both. A writer who is bound to
    one of them could put documents before the other's eyes that way.
    """
    match within:
        case And(parts):
            return all(holds(part, document) for part in parts)
        case Or(parts):
            return any(holds(part, document) for part in parts)
        case Eq(field) | In(field) | Range(field) | Prefix(field) | Contains(field):
            found = values_of(document, field)
            return bool(found) and all(satisfies(within, value) for value in found)
    return matches(within, document)


def filled(document: Mapping[str, Any], within: Filter) -> dict[str, Any]:
    """Return the document's fields with those that the filter fixes set where they are absent."""
    made: dict[str, Any] = dict(document)
    for field, value in defaults(within).items():
        built_in, name = split_field(field)
        if built_in:
            if made.get(name) is None:
                made[name] = value
        elif made.get("meta") is None or isinstance(made["meta"], Mapping):
            made["meta"] = _with(made.get("meta") or {}, name, value)
    return made


def _with(meta: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """The metadata with a value under a dotted name, where there is nothing under that name."""
    if name in meta:
        return dict(meta)
    first, _, rest = name.partition(".")
    if not rest:
        return {**meta, name: value}
    inner = meta.get(first)
    if inner is not None and not isinstance(inner, Mapping):
        return dict(meta)  # something else is there: the check that follows refuses it
    return {**meta, first: _with(inner or {}, rest, value)}


def check_inside(document: Document, within: Filter, told: str, known: Document | None = None) -> None:
    """Refuse a document that its own writer could not see, or that others would; ``known`` is what it was before."""
    names = [field for field, _ in fields_of(within)]
    kept = known is not None and all(values_of(known, name) == values_of(document, name) for name in names)
    if not (matches(within, document) if kept else holds(within, document)):
        fixed = ", ".join(f"{field}={value!r}" for field, value in defaults(within).items())
        way_out = (
            f"it must have {fixed} and nothing else there" if fixed else "its fields must satisfy the filter of the key"
        )
        raise InputError(f"document {document.id!r}: {told} outside of what this caller may write; {way_out}")


class ScopedDocuments:
    """The documents that the filter allows."""

    def __init__(self, whole: Documents, snapshot: Callable[[], AbstractContextManager[None]], within: Filter) -> None:
        self._whole, self._snapshot, self._within = whole, snapshot, within

    def _and(self, where: Filter | None) -> Filter:
        return both(self._within, where) or self._within

    def write(self, batch: Sequence[Prepared], mid: int | None, within: Filter | None = None) -> Written:
        for item in batch:
            check_inside(item.document, self._and(within), "it is")
        return self._whole.write(batch, mid, self._and(within))

    def remember(
        self,
        item: Prepared,
        mid: int | None,
        same: Callable[[Document], bool],
        likely: Sequence[int],
        named: bool,
        importance: Callable[[float], float],
        within: Filter | None = None,
    ) -> tuple[str, Written | None]:
        check_inside(item.document, self._and(within), "it is")
        return self._whole.remember(item, mid, same, likely, named, importance, self._and(within))

    def amend(
        self, id: str, mid: int | None, change: Callable[[Document], Prepared], within: Filter | None = None
    ) -> Written:
        def checked(known: Document) -> Prepared:
            changed = change(known)
            check_inside(changed.document, self._and(within), "the change would put it", known)
            return changed

        return self._whole.amend(id, mid, checked, self._and(within))

    def remove(self, where: Filter, feedback: bool = False) -> list[int]:
        return self._whole.remove(self._and(where), feedback)

    def touch(self, ids: Sequence[str], within: Filter | None = None) -> int:
        return self._whole.touch(ids, self._and(within))

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        with self._snapshot():
            found = self._whole.numbers(ids)
            seen = self._whole.fetch(list(found.values()))
        return {id: did for id, did in found.items() if did in seen and matches(self._within, seen[did])}

    def fetch(self, dids: Sequence[int]) -> dict[int, Document]:
        return {did: found for did, found in self._whole.fetch(dids).items() if matches(self._within, found)}

    def spans(self, pids: Sequence[int]) -> dict[int, Span]:
        return self._whole.spans(pids)

    def first_spans(self, dids: Sequence[int]) -> dict[int, Span]:
        return self._whole.first_spans(dids)

    def scan(self, where: Filter | None = None) -> Iterator[Document]:
        return self._whole.scan(self._and(where))

    def page(self, where: Filter | None, after: int, limit: int) -> list[tuple[int, Document]]:
        return self._whole.page(self._and(where), after, limit)

    def texts(self, limit: int, where: Filter | None = None) -> list[tuple[str, str]]:
        return self._whole.texts(limit, self._and(where))

    def counts(self, where: Filter | None = None) -> Counts:
        return self._whole.counts(self._and(where))

    def fields(self, where: Filter | None = None) -> list[str]:
        return self._whole.fields(self._and(where))

    def facets(self, where: Filter | None, values: int, most: int) -> list[Facet]:
        return self._whole.facets(self._and(where), values, most)

    def timeline(self, where: Filter | None, column: str, step: str | None) -> tuple[str, list[Period]]:
        return self._whole.timeline(self._and(where), column, step)

    def order_of(self, did: int) -> int:
        return self._whole.order_of(did)

    def adjacent(self, dids: Sequence[int], version: int) -> Adjacent:
        found = self._whole.adjacent(dids, version) or {}
        named = {did for own, around in found.items() for did in (own, *around) if did is not None}
        seen = self.fetch(list(named))
        kept = {
            did: (before if before in seen else None, after if after in seen else None)
            for did, (before, after) in found.items()
            if did in seen
        }
        return {did: around for did, around in kept.items() if around != (None, None)}


class ScopedLinks:
    """The links between documents that the filter allows."""

    def __init__(self, whole: Links, within: Filter) -> None:
        self._whole, self._within = whole, within

    def _and(self, where: Filter | None) -> Filter:
        return both(self._within, where) or self._within

    def add(self, links: Sequence[Link], within: Filter | None = None) -> None:
        self._whole.add(links, self._and(within))

    def remove(self, source: str, target: str, kind: str | None, within: Filter | None = None) -> int:
        return self._whole.remove(source, target, kind, self._and(within))

    def of(self, id: str | None = None, where: Filter | None = None) -> list[Link]:
        return self._whole.of(id, self._and(where))

    def superseded(self, ids: Sequence[str] | None, limit: int, where: Filter | None = None) -> list[tuple[str, str]]:
        return self._whole.superseded(ids, limit, self._and(where))

    def any_followed(self) -> bool:
        """Always true: whether there is such a link in the whole collection would show in the trace of a search."""
        return True

    def successors(self, dids: Sequence[int]) -> Successions:
        return self._whole.successors(dids)

    def resolutions(self, dids: Sequence[int]) -> Resolutions:
        return self._whole.resolutions(dids)


class ScopedFeedback:
    """The feedback on documents that the filter allows."""

    def __init__(self, whole: FeedbackLog, within: Filter) -> None:
        self._whole, self._within = whole, within

    def _and(self, where: Filter | None) -> Filter:
        return both(self._within, where) or self._within

    def add(self, given: Feedback, within: Filter | None = None) -> None:
        self._whole.add(given, self._and(within))

    def restore(self, given: Sequence[Feedback], within: Filter | None = None) -> int:
        return self._whole.restore(given, self._and(within))

    def remove(self, query: str | None, id: str | None, within: Filter | None = None) -> int:
        return self._whole.remove(query, id, self._and(within))

    def read(self, where: Filter | None = None) -> list[Feedback]:
        return self._whole.read(self._and(where))


class ScopedFilters:
    """Filters within the filter."""

    def __init__(self, whole: Filters, within: Filter) -> None:
        self._whole, self._within = whole, within

    def _and(self, where: Filter | None) -> Filter:
        return both(self._within, where) or self._within

    def check_fields(self, where: Filter, within: Filter | None = None) -> None:
        self._whole.check_fields(where, self._and(within))

    def scope(
        self, where: Filter | None, exclude: Sequence[str], version: int, within: Filter | None = None
    ) -> LegScope | None:
        return self._whole.scope(where, exclude, version, self._and(within))

    def recheck(self, where: Filter | None, exclude: Sequence[str]) -> Scope | None:
        return self._whole.recheck(self._and(where), exclude)

    def only(self, did: int) -> LegScope:
        return self._whole.only(did)  # a document that the caller may see: its number comes from ``numbers``


class ScopedVectors:
    """Searches, which get a scope, and the vectors of documents that the caller knows."""

    def __init__(self, whole: VectorIndex) -> None:
        self._whole = whole

    def search(self, vector: Vector, model: Model, depth: int, scope: Any, version: int) -> list[Found]:
        return self._whole.search(vector, model, depth, scope, version)

    def is_current(self, state: State) -> bool:
        return self._whole.is_current(state)

    def model_id(self, mid: int) -> str:
        return self._whole.model_id(mid)

    def of_documents(self, mid: int, dids: Sequence[int]) -> dict[int, bytes]:
        return self._whole.of_documents(mid, dids)


class Scoped:
    """A collection within a filter."""

    def __init__(self, whole: Collection, within: Filter) -> None:
        self._whole, self.bound = whole, within
        self.documents = ScopedDocuments(whole.documents, whole.snapshot, within)
        self.links = ScopedLinks(whole.links, within)
        self.feedback = ScopedFeedback(whole.feedback, within)
        self.filters = ScopedFilters(whole.filters, within)
        self.vectors = ScopedVectors(whole.vectors)

    @property
    def name(self) -> str:
        return self._whole.name

    @property
    def config(self) -> Mapping[str, Any]:
        return self._whole.config

    @property
    def analyzer(self) -> Analyzer:
        return self._whole.analyzer

    @property
    def store(self) -> Store:
        return self._whole.store

    @property
    def read_only(self) -> bool:
        return self._whole.read_only

    # These get a scope with every search.

    @property
    def lexical(self) -> LexicalIndex:
        return self._whole.lexical

    @property
    def trigrams(self) -> TrigramIndex:
        return self._whole.trigrams

    @property
    def graph(self) -> GraphIndex | None:
        return self._whole.graph

    @property
    def imports(self) -> None:
        """None: an import log knows of documents that the caller may not see."""
        return None

    def snapshot(self) -> AbstractContextManager[None]:
        return self._whole.snapshot()

    def state(self) -> State:
        return self._whole.state()

    def searching(self) -> AbstractContextManager[None]:
        return self._whole.searching()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotAllowedError(f"{name}: it concerns documents that this caller may not see")


#: Methods of the parts that a bound caller cannot use: they concern the whole collection, and the engine refuses them.
REFUSED = {
    "documents": ("sweep", "hashes", "passages"),
    "vectors": (
        "add_model",
        "remove_other_models",
        "missing",
        "next_missing",
        "known",
        "add",
        "by_hash",
        "embedding_lock",
    ),
    "collection": ("settings", "maintenance", "knows_version"),
}
