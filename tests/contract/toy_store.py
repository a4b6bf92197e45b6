"""A toy store: everything in dictionaries of this process, every search a scan.

It shows the least that ``trivet.stores.contract`` demands; docs/how-to/add-a-store.md goes through it. A write copies
the dictionaries, changes the copy and puts it in their place: so a snapshot is just a reference to the old ones.
"""

from __future__ import annotations

import math
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from trivet.errors import CollectionDroppedError, InputError, ModelReplacedError, NotFoundError, StoreError
from trivet.filters import Filter, both, flatten, is_text
from trivet.graph import supersession
from trivet.stores import STORES, StoreType
from trivet.stores.contract import Adjacent, Change, Counts, Found, KeyRow, Model, Prepared, Span, State, Text, Written
from trivet.stores.expiry import is_alive
from trivet.stores.field_check import check_fields
from trivet.stores.periods import step_for
from trivet.stores.ranking import best_passages
from trivet.stores.scoped import allowed, check_ends, check_within, ends
from trivet.text.analysis import Analyzer, ParsedQuery
from trivet.text.conversation import GRAPH_SPEAKER_KEYS, SESSION_KEYS, TURN_KEYS, is_skipped
from trivet.text.spelling import corrected, nearest_of
from trivet.text.trigrams import word_similarity
from trivet.types import (
    RESOLVED_BY,
    SUPERSEDES,
    Document,
    Facet,
    Feedback,
    Link,
    Period,
    Resolutions,
    Succession,
    Successions,
)

K1, B = 1.2, 0.75  # BM25
FORMATS = {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}


@dataclass
class Data:
    """All records of a collection at one version."""

    settings: str
    documents: dict[int, Document] = field(default_factory=dict)
    passages: dict[int, tuple[int, int, int, int, bytes]] = field(
        default_factory=dict
    )  # did, ordinal, start, stop, hash
    models: dict[int, Model] = field(default_factory=dict)
    vectors: dict[tuple[int, int], bytes] = field(default_factory=dict)  # by (mid, pid)
    links: dict[tuple[str, str, str], Link] = field(default_factory=dict)
    feedback: dict[tuple[str, str], Feedback] = field(default_factory=dict)
    changes: dict[int, Change] = field(default_factory=dict)
    tokens: dict[int, bytes] = field(default_factory=lambda: {0: secrets.token_bytes(8)})
    version: int = 0
    mid: int | None = None
    last_did: int = 0
    last_pid: int = 0
    last_mid: int = 0
    dropped: bool = False

    def copy(self) -> Data:
        new = copy(self)
        vars(new).update({name: dict(value) for name, value in vars(self).items() if isinstance(value, dict)})
        return new

    def seen(self, where: Filter | None) -> dict[int, Document]:
        """The documents that have not expired and that the filter allows."""
        return {did: found for did, found in self.documents.items() if is_alive(found) and allowed(found, where)}

    def visible(self, ids: Sequence[str], where: Filter | None) -> set[str]:
        return {found.id for found in self.seen(where).values()} & set(ids)

    def hidden(self, ids: Iterable[str], where: Filter | None) -> set[str]:
        """Without a filter, the id of a deleted document may be seen."""
        there = set(ids) if where is not None else {found.id for found in self.documents.values()}
        return there - {found.id for found in self.seen(where).values()}

    def number(self, id: str) -> int | None:
        return next((did for did, found in self.documents.items() if found.id == id), None)

    def own(self, did: int) -> list[int]:
        return [pid for pid, passage in self.passages.items() if passage[0] == did]

    def text(self, pid: int) -> tuple[str, str]:
        did, _, start, stop, _ = self.passages[pid]
        return self.documents[did].title, self.documents[did].text[start:stop]

    def remove(self, dids: Iterable[int], feedback: bool = False) -> list[int]:
        gone = list(dids)
        ids = {self.documents.pop(did).id for did in gone}
        self.remove_passages([pid for did in gone for pid in self.own(did)])
        self.links = {key: link for key, link in self.links.items() if not ids & {link.source, link.target}}
        if feedback:
            self.feedback = {key: given for key, given in self.feedback.items() if given.id not in ids}
        return gone

    def remove_passages(self, pids: Iterable[int]) -> None:
        for pid in set(pids):
            del self.passages[pid]
            for mid in self.models:
                self.vectors.pop((mid, pid), None)

    def sweep(self) -> list[int]:
        return self.remove([did for did, found in self.documents.items() if not is_alive(found)], feedback=True)


class Rows:
    """The records of one collection: snapshots and write transactions. Two engines of one store share ``data``."""

    def __init__(self, name: str, config: Mapping[str, Any], settings: str) -> None:
        self.name, self.config, self.data = name, dict(config), Data(settings)
        self.lock, self.local = threading.RLock(), threading.local()


class Access:
    """The rows of a collection through one open store."""

    def __init__(self, store: ToyStore, rows: Rows) -> None:
        self.store, self.rows, self.analyzer = store, rows, Analyzer(rows.config.get("language", "en"))

    @property
    def data(self) -> Data:
        self.store.check_open()
        data: Data = getattr(self.rows.local, "snapshot", None) or self.rows.data
        if data.dropped:
            raise CollectionDroppedError(f"collection: {self.rows.name!r} was dropped")
        return data

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        outer = getattr(self.rows.local, "snapshot", None)
        self.rows.local.snapshot = outer or self.data
        try:
            yield
        finally:
            self.rows.local.snapshot = outer

    @contextmanager
    def write(self, new_version: bool = True) -> Iterator[Data]:
        self.store.check_open()
        with self.rows.lock:
            data = self.rows.data.copy()
            yield data
            if new_version:
                data.version += 1
                data.tokens[data.version] = secrets.token_bytes(8)
            self.rows.data = data


class Part:
    """What every part needs."""

    def __init__(self, access: Access) -> None:
        self._access = access

    @property
    def data(self) -> Data:
        return self._access.data

    def is_current(self, state: State) -> bool:
        return True


class ToyDocuments(Part):
    swept: Callable[[list[int]], None] = staticmethod(lambda dids: None)

    def write(self, batch: Sequence[Prepared], mid: int | None, within: Filter | None = None) -> Written:
        with self._access.write() as data:
            data.sweep()
            return _write(data, batch, mid, within)

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
        with self._access.write() as data:
            data.sweep()
            known = data.number(item.document.id) if named else None
            found = _duplicate(data, item, same, likely, within) if known is None else known
            if found is None or (known is not None and not same(data.documents[known])):
                return item.document.id, _write(data, [item], mid, within)
            old, new = data.documents[found], item.document
            until = max(old.expires, new.expires) if old.expires and new.expires else None
            data.documents[found] = replace(_touched(old), importance=importance(old.importance), expires=until)
            moved = [replace(link, source=old.id) for link in item.links or ()]
            if within is not None:
                check_ends(moved, data.visible(ends(moved), within), self._access.rows.name)
            data.links |= {(link.source, link.target, link.type): link for link in moved}
            return old.id, None

    def amend(
        self, id: str, mid: int | None, change: Callable[[Document], Prepared], within: Filter | None = None
    ) -> Written:
        with self._access.write() as data:
            data.sweep()
            did = data.number(id)
            if did is None or not allowed(data.documents[did], within):
                raise NotFoundError(f"id: document {id!r} not found in collection {self._access.rows.name!r}")
            return _write(data, [change(data.documents[did])], mid, within)

    def remove(self, where: Filter, feedback: bool = False) -> list[int]:
        with self._access.write() as data:
            data.sweep()
            return data.remove(data.seen(where), feedback)

    def sweep(self) -> list[int]:
        with self._access.write() as data:
            dids = data.sweep()
        self.swept(dids)
        return dids

    def touch(self, ids: Sequence[str], within: Filter | None = None) -> int:
        with self._access.write(new_version=False) as data:
            found = {did: document for did, document in data.seen(within).items() if document.id in ids}
            data.documents |= {did: _touched(document) for did, document in found.items()}
            return len(found)

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        return {found.id: did for did, found in self.data.seen(None).items() if found.id in set(ids)}

    def fetch(self, dids: Sequence[int]) -> dict[int, Document]:
        return {did: found for did, found in self.data.seen(None).items() if did in set(dids)}

    def spans(self, pids: Sequence[int]) -> dict[int, Span]:
        return {pid: self.data.passages[pid][:4] for pid in pids if pid in self.data.passages}

    def first_spans(self, dids: Sequence[int]) -> dict[int, Span]:
        return {span[0]: span[:4] for span in self.data.passages.values() if span[0] in set(dids) and span[1] == 0}

    def hashes(self, pids: Sequence[int]) -> dict[int, tuple[int, bytes]]:
        data = self.data
        return {pid: (data.passages[pid][0], data.passages[pid][4]) for pid in pids if pid in data.passages}

    def passages(self, dids: Sequence[int]) -> list[tuple[int, int, int, int, int, bytes]]:
        found = [(pid, *passage) for pid, passage in self.data.passages.items() if passage[0] in set(dids)]
        return sorted(found, key=lambda row: row[1:3])

    def scan(self, where: Filter | None = None) -> Iterator[Document]:
        return (found for _, found in self.page(where, 0, len(self.data.documents)))

    def page(self, where: Filter | None, after: int, limit: int) -> list[tuple[int, Document]]:
        return sorted((item for item in self.data.seen(where).items() if item[0] > after), key=lambda item: item[0])[
            :limit
        ]

    def texts(self, limit: int, where: Filter | None = None) -> list[tuple[str, str]]:
        return [(found.id, found.text) for found in self.scan(where) if found.text][:limit]

    def counts(self, where: Filter | None = None) -> Counts:
        data = self.data
        seen = data.seen(where)
        ids = {found.id for found in seen.values()}
        pids = [pid for pid, passage in data.passages.items() if passage[0] in seen]
        embedded = sum((data.mid, pid) in data.vectors for pid in pids)
        return Counts(len(seen), len(pids), embedded, sum({x.source, x.target} <= ids for x in data.links.values()))

    def fields(self, where: Filter | None = None) -> list[str]:
        return sorted({key for found in self.data.seen(where).values() for key, _ in flatten(found.meta)})

    def facets(self, where: Filter | None, values: int, most: int) -> list[Facet]:
        seen = self.data.seen(where).values()
        found = [_facet("kind", [{document.kind} for document in seen], values)]
        for key in self.fields(where)[:most]:
            own = ({value for name, value in flatten(document.meta) if name == key} for document in seen)
            found.append(_facet(key, [each for each in own if each], values))
        return found

    def timeline(self, where: Filter | None, column: str, step: str | None) -> tuple[str, list[Period]]:
        moments = [moment for found in self.data.seen(where).values() if (moment := getattr(found, column))]
        stamps = [moment.timestamp() for moment in moments]
        step = step or step_for(min(stamps, default=None), max(stamps, default=None))
        counts = Counter(moment.astimezone(UTC).strftime(FORMATS[step]) for moment in moments)
        return step, [Period(*item) for item in sorted(counts.items())]

    def order_of(self, did: int) -> int:
        return did

    def adjacent(self, dids: Sequence[int], version: int) -> Adjacent:
        sessions: dict[str, list[int]] = {}
        for did, document in sorted(self._access.data.documents.items()):
            if any(document.meta.get(key, "") not in ("", None) for key in SESSION_KEYS):
                sessions.setdefault(repr([document.meta.get(key) for key in TURN_KEYS]), []).append(did)
        found: dict[int, tuple[int | None, int | None]] = {}
        for turns in sessions.values():
            for before, did, after in zip([None, *turns], turns, [*turns[1:], None], strict=False):
                found[did] = (self._person(before), self._person(after))
        return {did: found[did] for did in dids if found.get(did, (None, None)) != (None, None)}

    def _person(self, did: int | None) -> int | None:
        """The turn, unless an assistant speaks."""
        if did is None:
            return None
        meta = self._access.data.documents[did].meta
        return None if is_skipped(meta.get(key) for key in GRAPH_SPEAKER_KEYS) else did


def _touched(document: Document) -> Document:
    return replace(document, accesses=document.accesses + 1, accessed=datetime.now(UTC))


def _facet(key: str, of_documents: list[set[Any]], values: int) -> Facet:
    counts = Counter(value if is_text(value) else value + 0 for own in of_documents for value in own)  # True is 1
    listed = sorted(counts.items(), key=lambda item: (-item[1], isinstance(item[0], str), item[0]))
    return Facet(key, len(of_documents), len(counts), tuple(listed[:values]))


def _duplicate(
    data: Data, item: Prepared, same: Callable[[Document], bool], likely: Sequence[int], within: Filter | None
) -> int | None:
    """A document that is the same and not superseded, by the hash of its first passage or among the likely ones."""
    hashed = [
        did for did, ordinal, _, _, digest in data.passages.values() if (ordinal, digest) == (0, item.passages[0][3])
    ]
    superseded = {link.target for link in data.links.values() if link.type == SUPERSEDES}
    for did in sorted({*hashed, *likely} & data.documents.keys()):
        found, new = data.documents[did], item.document
        alike = (found.kind, found.meta) == (new.kind, new.meta) and allowed(found, within) and same(found)
        if alike and found.id not in superseded:
            return did
    return None


def _write(data: Data, batch: Sequence[Prepared], mid: int | None, within: Filter | None) -> Written:
    known = {found.id: did for did, found in data.documents.items()}
    if within is not None:
        check_within(batch, [item.document.id for item in batch if item.document.id in known], data.visible, within)
    written = Written(0, 0, 0)
    for item in batch:
        written += _write_one(data, item, known.get(item.document.id), mid, within)
    data.links |= {(x.source, x.target, x.type): x for item in batch for x in item.links or ()}
    return written


def _write_one(data: Data, item: Prepared, did: int | None, mid: int | None, within: Filter | None) -> Written:
    now, new = datetime.now(UTC), item.document
    document = replace(new, created=new.created or now, updated=new.updated or now)
    if did is None:
        if within is not None:  # feedback on an earlier document with this id is not for this caller
            data.feedback = {key: given for key, given in data.feedback.items() if given.id != new.id}
        did = data.last_did = data.last_did + 1
        data.documents[did] = document
        return Written(1, 0, 0, _cut(data, did, item, mid, {}))
    old = data.documents[did]
    seen = data.visible([link.target for link in data.links.values()], within)
    outgoing = {key: link for key, link in data.links.items() if link.source == new.id and link.target in seen}
    relinked = item.links is not None and set(outgoing.values()) != set(item.links)
    accesses, accessed = max(new.accesses, old.accesses), new.accessed or old.accessed
    document = replace(document, created=new.created or old.created, accesses=accesses, accessed=accessed)
    if replace(document, updated=old.updated) == old and item.vector is None and not relinked:
        return Written(0, 0, 1)
    if relinked:
        data.links = {key: link for key, link in data.links.items() if key not in outgoing}
    data.documents[did] = document
    if (old.title, old.text) == (document.title, document.text) and item.vector is None:
        return Written(0, 1, 0)
    pids = data.own(did)
    kept = {(mid, data.passages[pid][4]): vector for (mid, pid), vector in data.vectors.items() if pid in pids}
    data.remove_passages(pids)
    return Written(0, 1, 0, _cut(data, did, item, mid, kept if item.vector is None else {}))


def _cut(
    data: Data, did: int, item: Prepared, mid: int | None, kept: Mapping[tuple[int, bytes], bytes]
) -> tuple[int, ...]:
    """Add the passages of a document, with its own vector or those of the same texts before; return their numbers."""
    pids = range(data.last_pid + 1, data.last_pid + 1 + len(item.passages))
    for pid, passage in zip(pids, item.passages, strict=True):
        data.passages[pid] = (did, *passage)
        data.vectors |= {(mid, pid): vector for (mid, digest), vector in kept.items() if digest == passage[3]}
        if item.vector is not None and mid is not None:
            data.vectors[mid, pid] = item.vector
    data.last_pid += len(pids)
    return tuple(pids)


class ToyLinks(Part):
    def add(self, links: Sequence[Link], within: Filter | None = None) -> None:
        with self._access.write() as data:
            check_ends(links, data.visible(ends(links), within), self._access.rows.name)
            data.links |= {(link.source, link.target, link.type): link for link in links}

    def remove(self, source: str, target: str, kind: str | None, within: Filter | None = None) -> int:
        with self._access.write() as data:
            both_seen = within is None or len(data.visible([source, target], within)) == 2
            gone = [key for key in data.links if key[:2] == (source, target) and kind in (None, key[2]) and both_seen]
            data.links = {key: link for key, link in data.links.items() if key not in gone}
            return len(gone)

    def of(self, id: str | None = None, where: Filter | None = None) -> list[Link]:
        data = self.data
        found = [data.links[key] for key in sorted(data.links) if id is None or id in key[:2]]
        hidden = data.hidden(ends(found), where)
        return [link for link in found if not hidden & {link.source, link.target}]

    def superseded(self, ids: Sequence[str] | None, limit: int, where: Filter | None = None) -> list[tuple[str, str]]:
        seen = {found.id: found.created for found in self.data.seen(where).values()}
        links = [link for link in self.data.links.values() if link.type == SUPERSEDES and link.source != link.target]
        pairs = [(x.target, x.source) for x in links if {x.target, x.source} <= seen.keys()]
        pairs = [pair for pair in pairs if ids is None or pair[0] in ids]
        return sorted(pairs, key=lambda pair: (-_stamp(seen[pair[1]]), pair[0]))[:limit]

    def any_followed(self) -> bool:
        return any(link.type in (SUPERSEDES, RESOLVED_BY) for link in self.data.links.values())

    def successors(self, dids: Sequence[int]) -> Successions:
        data = self.data
        numbers = {found.id: did for did, found in data.documents.items()}

        def step(olds: Sequence[int], most: int) -> tuple[list[Succession], int]:
            ids = {data.documents[did].id: did for did in olds if did in data.documents}
            read = [x for x in data.links.values() if x.type == SUPERSEDES and x.target in ids][:most]
            found = [(x.target, x.source, data.documents[numbers[x.source]]) for x in read if x.source in numbers]
            return [
                Succession(ids[old], old, numbers[new], new, _stamp(document.created)) for old, new, document in found
            ], len(read)

        return supersession.walk(dids, step)

    def resolutions(self, dids: Sequence[int]) -> Resolutions:
        data = self.data
        numbers = {found.id: did for did, found in data.documents.items()}
        found: dict[int, list[tuple[int, str]]] = {}
        for link in sorted(data.links.values(), key=lambda link: link.target):
            if link.type == RESOLVED_BY and numbers.get(link.source) in dids and link.target in numbers:
                found.setdefault(numbers[link.source], []).append((numbers[link.target], link.target))
        return Resolutions(found)


def _stamp(moment: datetime | None) -> float:
    return moment.timestamp() if moment else 0.0


class ToyFeedback(Part):
    def add(self, given: Feedback, within: Filter | None = None) -> None:
        with self._access.write(new_version=False) as data:
            if not data.visible([given.id], within):
                raise NotFoundError(f"feedback: document {given.id!r} not found in {self._access.rows.name!r}")
            data.feedback[given.query, given.id] = given

    def restore(self, given: Sequence[Feedback], within: Filter | None = None) -> int:
        with self._access.write(new_version=False) as data:
            seen = data.visible([item.id for item in given], within)
            new = {(x.query, x.id): x for x in given if within is None or x.id in seen}
            news = {key: x for key, x in new.items() if key not in data.feedback or data.feedback[key].at < x.at}
            data.feedback |= news
            return len(news)

    def remove(self, query: str | None, id: str | None, within: Filter | None = None) -> int:
        with self._access.write(new_version=False) as data:
            seen = data.visible([given.id for given in data.feedback.values()], within)
            chosen = [key for key in data.feedback if query in (None, key[0]) and id in (None, key[1])]
            gone = [key for key in chosen if within is None or key[1] in seen]
            data.feedback = {key: given for key, given in data.feedback.items() if key not in gone}
            return len(gone)

    def read(self, where: Filter | None = None) -> list[Feedback]:
        hidden = self.data.hidden((given.id for given in self.data.feedback.values()), where)
        return sorted((x for x in self.data.feedback.values() if x.id not in hidden), key=lambda x: x.at)


class ToySettings(Part):
    def change(self, change: Callable[[str], str], by: str = "") -> str:
        with self._access.write() as data:
            previous, data.settings = data.settings, change(data.settings)
            number = len(data.changes) + 1
            data.changes[number] = Change(number, datetime.now(UTC), by, data.settings, previous)
            return data.settings

    def history(self, limit: int) -> list[Change]:
        return sorted(self.data.changes.values(), key=lambda change: -change.number)[:limit]

    def find(self, number: int) -> Change | None:
        return self.data.changes.get(number)


@dataclass(frozen=True)
class ToyScope:
    """The numbers of the documents that may be seen."""

    dids: frozenset[int]

    def __contains__(self, did: int) -> bool:
        return did in self.dids

    def expect(self, dids: Iterable[int]) -> None: ...

    def rows(self, dids: Any) -> Any:
        return np.isin(dids, list(self.dids))


class ToyFilters(Part):
    def check_fields(self, where: Filter, within: Filter | None = None) -> None:
        documents = ToyDocuments(self._access)
        check_fields(
            where,
            within,
            lambda key, seen: key in documents.fields(seen),
            lambda seen: bool(self.data.seen(seen)),
            documents.fields,
        )

    def scope(
        self, where: Filter | None, exclude: Sequence[str], version: int, within: Filter | None = None
    ) -> ToyScope | None:
        if where is not None:
            self.check_fields(where, within)
        return self.recheck(both(within, where), exclude)

    def recheck(self, where: Filter | None, exclude: Sequence[str]) -> ToyScope | None:
        seen = self.data.seen(where)
        return ToyScope(frozenset(did for did, found in seen.items() if found.id not in set(exclude)))

    def only(self, did: int) -> ToyScope:
        return ToyScope(frozenset({did}))


class ToyLexical(Part):
    def search(
        self, query: ParsedQuery, match: str, depth: int, scope: Any, version: int
    ) -> tuple[list[Found], float, tuple[str, ...]]:
        data = self.data
        terms = {pid: self._access.analyzer.terms("\n".join(filter(None, data.text(pid)))) for pid in data.passages}
        visible = {pid: found for pid, found in terms.items() if scope is None or data.passages[pid][0] in scope}
        known = Counter(term for found in visible.values() for term in set(found))
        query, notes = corrected(query, known.__contains__, lambda term: nearest_of(term, known, known.__contains__))
        phrases = [list(phrase) for phrase in query.phrases]
        every = dict.fromkeys([*query.terms, *(term for phrase in phrases for term in phrase)])
        frequency = Counter(term for found in terms.values() for term in every.keys() & set(found))
        average = sum(map(len, terms.values())) / max(1, len(terms))
        boosts = dict(query.weights)
        weights = {
            term: math.log(1 + (len(terms) - frequency[term] + 0.5) / (frequency[term] + 0.5)) * boosts.get(term, 1.0)
            for term in every
        }

        def score(found: list[str]) -> float:
            norm, counts = K1 * (1 - B + B * len(found) / max(1.0, average)), Counter(found)
            return sum((K1 + 1) * weights[term] * counts[term] / (counts[term] + norm) for term in every)

        def ranked(required: Sequence[str]) -> list[Found]:
            rows = [
                (score(found), pid, data.passages[pid][0])
                for pid, found in visible.items()
                if set(required) <= set(found) and all(_has_phrase(found, phrase) for phrase in phrases)
            ]
            return best_passages([row for row in rows if row[0] > 0], depth)

        ceiling = (K1 + 1) * sum(weights.values())
        if match == "all" or (match == "auto" and 1 < len(query.required) <= 4):
            found = ranked(query.required)
            if match == "all" or len(found) >= depth:
                return found, ceiling, (*notes, "all words")
        return ranked(()), ceiling, (*notes, "any word")

    def positions(self, pids: Sequence[int], terms: Iterable[str]) -> Mapping[int, Any]:
        return {}


def _has_phrase(found: list[str], phrase: list[str]) -> bool:
    return any(found[at : at + len(phrase)] == phrase for at in range(len(found)))


class ToyTrigrams(Part):
    def search(
        self, keywords: str, threshold: float, depth: int, scope: Any, version: int
    ) -> tuple[list[Found], tuple[str, ...]]:
        data = self.data
        rows = [
            (word_similarity(keywords, "\n".join(filter(None, data.text(pid)))), pid, passage[0])
            for pid, passage in data.passages.items()
            if scope is None or passage[0] in scope
        ]
        return best_passages([row for row in rows if row[0] >= threshold], depth), ()


class ToyVectors(Part):
    def search(self, vector: Any, model: Model, depth: int, scope: Any, version: int) -> list[Found]:
        data = self.data
        if model.mid not in data.models:
            raise ModelReplacedError(f"collection: {self._access.rows.name!r} was re-embedded meanwhile")
        rows = []
        for pid, passage in data.passages.items():
            stored = np.frombuffer(data.vectors.get((model.mid, pid), b""), dtype="<f4")
            if stored.any() and (scope is None or passage[0] in scope):
                rows.append((float(stored @ vector / (np.linalg.norm(stored) or 1)), pid, passage[0]))
        return best_passages(rows, depth)

    def add_model(self, id: str, spec: str, dim: int, answers: bool) -> Model:
        with self._access.write() as data:
            known = next((model for model in data.models.values() if model.id == id), None)
            if known is None:
                data.last_mid += 1
                known = Model(data.last_mid, id, spec, dim, 0)
            data.models[known.mid] = replace(known, spec=spec)
            data.mid = known.mid if answers else data.mid
            return data.models[known.mid]

    def model_id(self, mid: int) -> str:
        return self.data.models[mid].id if mid in self.data.models else ""

    def remove_other_models(self, mid: int) -> None:
        with self._access.write() as data:
            data.models = {mid: data.models[mid]}
            data.vectors = {key: vector for key, vector in data.vectors.items() if key[0] == mid}

    def missing(self, mid: int) -> int:
        return len(self.next_missing(mid, 0, len(self.data.passages)))

    def next_missing(self, mid: int, after: int, limit: int) -> list[Text]:
        data = self.data
        pids = sorted(pid for pid in data.passages if pid > after and (mid, pid) not in data.vectors)[:limit]
        return [(pid, data.passages[pid][0], *data.text(pid)) for pid in pids]

    def known(self, mid: int, pids: Sequence[int] | None = None) -> list[tuple[int, bytes]]:
        data = self.data
        stored = {data.passages[pid][4]: vector for (of, pid), vector in data.vectors.items() if of == mid}
        missing = [pid for pid in data.passages if (mid, pid) not in data.vectors and (pids is None or pid in pids)]
        return [(pid, stored[data.passages[pid][4]]) for pid in missing if data.passages[pid][4] in stored]

    def add(self, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        with self._access.write() as data:
            if mid in data.models:
                data.vectors |= {(mid, pid): vector for pid, vector in vectors if pid in data.passages}

    def of_documents(self, mid: int, dids: Sequence[int]) -> dict[int, bytes]:
        data = self.data
        single = {did: pids[0] for did in dids if len(pids := data.own(did)) == 1}
        return {did: data.vectors[mid, pid] for did, pid in single.items() if (mid, pid) in data.vectors}

    def by_hash(self, mid: int, dids: Sequence[int]) -> dict[int, dict[bytes, bytes]]:
        data = self.data
        return {
            did: {data.passages[pid][4]: data.vectors[mid, pid] for pid in data.own(did) if (mid, pid) in data.vectors}
            for did in dids
        }

    def embedding_lock(self) -> AbstractContextManager[bool]:
        return nullcontext(True)


class ToyMaintenance(Part):
    """There are no indexes, so there is nothing to maintain."""

    def update(self, progress: Any = None, graph: bool = False, vectors: bool = True) -> None: ...
    def update_lexical(self, progress: Any = None) -> None: ...
    def update_vectors(self) -> None: ...
    def indexer(self) -> None: ...
    def check_locks(self) -> None: ...
    def discard(self) -> None: ...

    def compact(self, progress: Any = None) -> int:
        return 0

    def verify(self, progress: Any = None) -> tuple[list[str], dict[str, int]]:
        return [], {"documents": len(self.data.documents)}


class ToyCollection:
    read_only = False
    bound = graph = imports = None

    def __init__(self, access: Access) -> None:
        self._access = access
        self.name, self.config, self.analyzer = access.rows.name, access.rows.config, access.analyzer
        self.store, self.snapshot = access.store, access.snapshot
        self.documents, self.links, self.feedback = ToyDocuments(access), ToyLinks(access), ToyFeedback(access)
        self.settings, self.filters, self.lexical = ToySettings(access), ToyFilters(access), ToyLexical(access)
        self.trigrams, self.vectors, self.maintenance = ToyTrigrams(access), ToyVectors(access), ToyMaintenance(access)

    def state(self) -> State:
        data = self._access.data
        model = data.models.get(data.mid) if data.mid else None
        model = model and replace(model, vectors=sum(mid == model.mid for mid, _ in data.vectors))
        counts = (len(data.documents), len(data.passages))
        return State(data.version, data.settings, *counts, model, data.tokens[data.version])

    def knows_version(self, version: int, token: bytes) -> bool:
        return self._access.data.tokens.get(version) == token

    def searching(self) -> AbstractContextManager[None]:
        return nullcontext()


@dataclass
class Place:
    """What is stored at one address."""

    collections: dict[str, Rows] = field(default_factory=dict)
    keys: dict[str, KeyRow] = field(default_factory=dict)
    secret: bytes = field(default_factory=partial(secrets.token_bytes, 16))


PLACES: dict[str, Place] = {}


class ToyStore:
    def __init__(self, url: str) -> None:
        self.path = self.url = url
        self._place, self._closed = PLACES.setdefault(url, Place()), False

    def check_open(self) -> None:
        if self._closed:
            raise StoreError(f"store: {self.url!r} is closed; open it again")

    def collection(self, name: str, config: Mapping[str, Any], settings: str) -> ToyCollection:
        given = {key: value for key, value in config.items() if value is not None}
        rows = self._place.collections.setdefault(name, Rows(name, given, settings))
        for key, value in given.items():
            if rows.config.get(key) != value:
                raise InputError(f"{key}: collection {name!r} was made with {rows.config.get(key)!r}, not {value!r}")
        return ToyCollection(Access(self, rows))

    def names(self) -> list[str]:
        return sorted(self._place.collections)

    def drop(self, name: str) -> None:
        if name not in self._place.collections:
            raise NotFoundError(f"collection: {name!r} does not exist")
        self._place.collections.pop(name).data.dropped = True

    def problems(self) -> list[str]:
        return []

    def sizes(self) -> tuple[int, int]:
        return 1 + sum(
            len(x.text) for rows in self._place.collections.values() for x in rows.data.documents.values()
        ), 0

    def space(self) -> dict[str, int]:
        return {"texts": self.sizes()[0]}

    def cursor_key(self) -> bytes:
        return self._place.secret

    def reclaim(self) -> None: ...

    def files(self) -> set[Path]:
        return set()

    def backup(self, target: Path, progress: Any = None) -> int:
        raise InputError("backup: a toy store has none")

    def redistribute(self, name: str, by: str) -> bool:
        raise InputError("redistribute: a toy store is not divided")

    def close(self) -> None:
        self._closed = True


class ToyKeys:
    def __init__(self, url: str) -> None:
        self._keys = PLACES.setdefault(url, Place()).keys

    def add(self, row: KeyRow) -> None:
        self._keys[row.id] = row

    def rows(self) -> list[KeyRow]:
        return sorted(self._keys.values(), key=lambda row: (row.created, row.id))

    def find(self, id: str) -> KeyRow | None:
        return self._keys.get(id)

    def revoke(self, id: str, at: float) -> None:
        self._keys[id] = replace(self._keys[id], revoked=at)

    def any(self) -> bool:
        return bool(self._keys)

    def any_in_use(self) -> bool:
        return any(row.revoked is None for row in self._keys.values())

    def close(self) -> None: ...


STORE = StoreType(ToyStore, PLACES.__contains__, ToyKeys)
if "toy" not in STORES:
    STORES.add("toy", STORE)
