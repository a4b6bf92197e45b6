"""A collection as a caller sees it who is bound to a filter.

``Scoped`` is a collection (the ``Shelf`` of ``contract.py``) that adds one filter to everything that is read and holds
everything that is written to it. It has no way around: what it does not define, a bound caller cannot do, and a test
fails when the contract has a method that ``Scoped`` neither defines nor refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from trivet.errors import InputError, NotFoundError, TakenError
from trivet.filters import (
    And,
    Eq,
    Filter,
    In,
    Or,
    Range,
    both,
    fields_of,
    matches,
    satisfies,
    split_field,
    values_of,
)
from trivet.stores.contract import Counts, Prepared, Shelf, State, Written
from trivet.types import Document, Facet, Feedback, Link, Period, Resolutions, Successions

if TYPE_CHECKING:
    from trivet.analysis import Analyzer
    from trivet.stores.contract import Scope, Span, Store

Visible = Callable[[Sequence[str], Filter], set[str]]


def allowed(document: Document, within: Filter | None) -> bool:
    """Does the filter allow this document? None allows every one."""
    return within is None or matches(within, document)


def ends(links: Iterable[Link]) -> list[str]:
    """Return the ids that the links connect."""
    return list(dict.fromkeys(end for link in links for end in (link.source, link.target)))


def check_ends(links: Iterable[Link], seen: set[str], name: str) -> None:
    """Refuse a link from or to a document that is not among those that may be seen."""
    for link in links:
        for side, id in (("source", link.source), ("target", link.target)):
            if id not in seen:
                raise NotFoundError(f"link {side}: there is no document {id!r} in collection {name!r}")


def check_within(batch: Sequence[Prepared], known: Iterable[str], visible: Visible, within: Filter) -> None:
    """Refuse to replace a document that the filter hides, or to link to one; ``known`` are the ids that are taken."""
    taken = list(known)
    if hidden := sorted(set(taken) - visible(taken, within)):
        raise TakenError(f"id: {hidden[0]!r} cannot be used here; choose another, or leave it out to have one made")
    own = {item.document.id for item in batch}
    targets = list(dict.fromkeys(link.target for item in batch for link in item.links or () if link.target not in own))
    if missing := sorted(set(targets) - visible(targets, within)):
        raise InputError(f"link: there is no document {missing[0]!r} to link to; add it first")


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
    """Does every value of the document's fields satisfy the filter, not just one of several?

    ``matches`` asks for one: a document with the tenants ``["alice", "bob"]`` is seen by both. A writer who is bound to
    one of them could put documents before the other's eyes that way.
    """
    match within:
        case And(parts):
            return all(holds(part, document) for part in parts)
        case Or(parts):
            return any(holds(part, document) for part in parts)
        case Eq(field) | In(field) | Range(field):
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


class Scoped:
    """A collection within a filter."""

    def __init__(self, whole: Shelf, within: Filter) -> None:
        self.whole, self.within = whole, within

    def _and(self, where: Filter | None) -> Filter:
        return both(self.within, where) or self.within

    @property
    def name(self) -> str:
        return self.whole.name

    @property
    def config(self) -> Mapping[str, Any]:
        return self.whole.config

    @property
    def analyzer(self) -> Analyzer:
        return self.whole.analyzer

    @property
    def store(self) -> Store:
        return self.whole.store

    @property
    def read_only(self) -> bool:
        return self.whole.read_only

    # --- state, settings and models -----------------------------------------------------------------------------------

    def snapshot(self) -> AbstractContextManager[None]:
        return self.whole.snapshot()

    def state(self) -> State:
        return self.whole.state()

    def counts(self, where: Filter | None = None) -> Counts:
        return self.whole.counts(self._and(where))

    def model_id(self, mid: int) -> str:
        return self.whole.model_id(mid)

    # --- records ------------------------------------------------------------------------------------------------------

    def write(self, batch: Sequence[Prepared], mid: int | None, within: Filter | None = None) -> Written:
        for item in batch:
            check_inside(item.document, self._and(within), "it is")
        return self.whole.write(batch, mid, self._and(within))

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
        return self.whole.remember(item, mid, same, likely, named, importance, self._and(within))

    def amend(
        self,
        identifier: str,
        mid: int | None,
        change: Callable[[Document], Prepared],
        within: Filter | None = None,
    ) -> Written:
        def checked(known: Document) -> Prepared:
            changed = change(known)
            check_inside(changed.document, self._and(within), "the change would put it", known)
            return changed

        return self.whole.amend(identifier, mid, checked, self._and(within))

    def remove(self, where: Filter, judged: bool = False) -> list[int]:
        return self.whole.remove(self._and(where), judged)

    def link(self, links: Sequence[Link], within: Filter | None = None) -> None:
        self.whole.link(links, self._and(within))

    def unlink(self, source: str, target: str, kind: str | None, within: Filter | None = None) -> int:
        return self.whole.unlink(source, target, kind, self._and(within))

    def links_of(self, identifier: str | None = None, where: Filter | None = None) -> list[Link]:
        return self.whole.links_of(identifier, self._and(where))

    def touch(self, ids: Sequence[str], within: Filter | None = None) -> int:
        return self.whole.touch(ids, self._and(within))

    def judge(self, given: Feedback, within: Filter | None = None) -> None:
        self.whole.judge(given, self._and(within))

    def restore_feedback(self, given: Sequence[Feedback], within: Filter | None = None) -> int:
        return self.whole.restore_feedback(given, self._and(within))

    def forget_feedback(self, query: str | None, identifier: str | None, within: Filter | None = None) -> int:
        return self.whole.forget_feedback(query, identifier, self._and(within))

    def feedbacks(self, where: Filter | None = None) -> list[Feedback]:
        return self.whole.feedbacks(self._and(where))

    # --- reading ------------------------------------------------------------------------------------------------------

    def dids(self, ids: Sequence[str]) -> dict[str, int]:
        with self.whole.snapshot():
            found = self.whole.dids(ids)
            seen = self.whole.fetch(list(found.values()))
        return {id: did for id, did in found.items() if did in seen and matches(self.within, seen[did])}

    def fetch(self, dids: Sequence[int]) -> dict[int, Document]:
        return {did: found for did, found in self.whole.fetch(dids).items() if matches(self.within, found)}

    def fetch_spans(self, pids: Sequence[int]) -> dict[int, Span]:
        return self.whole.fetch_spans(pids)

    def first_passages(self, dids: Sequence[int]) -> dict[int, Span]:
        return self.whole.first_passages(dids)

    def documents(self, where: Filter | None = None) -> Iterator[Document]:
        return self.whole.documents(self._and(where))

    def page(self, where: Filter | None, after: int, limit: int) -> list[tuple[int, Document]]:
        return self.whole.page(self._and(where), after, limit)

    def facets(self, where: Filter | None, values: int, most: int) -> list[Facet]:
        return self.whole.facets(self._and(where), values, most)

    def timeline(self, where: Filter | None, column: str, step: str | None) -> tuple[str, list[Period]]:
        return self.whole.timeline(self._and(where), column, step)

    def superseded(self, ids: Sequence[str] | None, limit: int, where: Filter | None = None) -> list[tuple[str, str]]:
        return self.whole.superseded(ids, limit, self._and(where))

    def texts(self, limit: int, where: Filter | None = None) -> list[tuple[str, str]]:
        return self.whole.texts(limit, self._and(where))

    def fields(self, where: Filter | None = None) -> list[str]:
        return self.whole.fields(self._and(where))

    # --- filters and links that change recall -------------------------------------------------------------------------

    def check_fields(self, where: Filter, within: Filter | None = None) -> None:
        self.whole.check_fields(where, self._and(within))

    def scope(
        self, where: Filter | None, exclude: Sequence[str], version: int, within: Filter | None = None
    ) -> Scope | None:
        return self.whole.scope(where, exclude, version, self._and(within))

    def recheck(self, where: Filter | None, exclude: Sequence[str]) -> Scope | None:
        return self.whole.recheck(self._and(where), exclude)

    def only(self, did: int) -> Scope:
        """A document that the caller may see: its number comes from ``dids``."""
        return self.whole.only(did)

    def pending(self) -> int:
        """Passages within the filter that the model has not embedded yet."""
        if not self.whole.state().pending:
            return 0
        counts = self.counts()
        return counts.passages - counts.embedded

    def has_chains(self, version: int) -> bool:
        """Always: whether there is such a link at all is told by the trace of a search, and is of all documents."""
        return True

    def successors(self, dids: Sequence[int]) -> Successions:
        return self.whole.successors(dids)

    def resolutions(self, dids: Sequence[int]) -> Resolutions:
        return self.whole.resolutions(dids)

    # --- what carries no text, or is told a scope ---------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name not in PASSED_ON:
            raise AttributeError(f"{name!r} is not for a caller who is bound to a filter")
        return getattr(self.whole, name)


#: What the legs ask (they are told a scope), and what tells numbers, places and vectors of documents that are known.
PASSED_ON = frozenset(
    (
        *("find_words", "find_near", "spelling", "is_current", "graph", "ties", "places"),
        *("order_of", "asking", "sole_vectors"),
    )
)
#: Of the whole collection: a bound caller is refused by the engine before it comes here.
REFUSED = frozenset(
    (
        *("change_settings", "settings_history", "settings_change", "add_model", "forget_other_models"),
        *("knows_version", "hashes"),
        *("unembedded", "next_pending", "known_vectors", "add_vectors", "passages_of", "vectors_of", "embedding"),
        *("tidy", "read_connections", "tidy_words", "verify", "discard_projections", "compact", "sweep"),
    )
)
