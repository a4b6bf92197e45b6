"""How do documents get into the truth and out of it?

Every function here works inside a transaction that holds the lock of its collection's row, so that of two writers each
sees all or nothing of the other. What is new is loaded with COPY; what a document brings with it (passages, vectors,
fields) goes with it by the foreign keys.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from trivet.concepts import triples_of
from trivet.errors import InputError, StoreError
from trivet.filters import Filter, flatten, is_text, matches
from trivet.stores.contract import Prepared, Span, Written
from trivet.stores.postgres import judgements, links, terms, vectors
from trivet.stores.postgres.database import Connection
from trivet.stores.postgres.filter_sql import number_of
from trivet.stores.postgres.parts import Part, Parts
from trivet.stores.postgres.place import Place, count, take
from trivet.stores.postgres.removals import remove_passages
from trivet.stores.scoped import check_within
from trivet.types import Document, Link

#: Document, in order
COLUMNS = (
    "did, id, title, text, kind, meta, importance, created, updated, accessed, valid_from, valid_to, accesses, expires"
)
_ROW = f"{COLUMNS}, hash"
MAX_KEY = 500  # characters of a metadata key: it is part of an index


def write(
    connection: Connection,
    place: Place,
    mid: int | None,
    batch: Sequence[Prepared],
    now: float,
    within: Filter | None = None,
) -> Written:
    """Insert or replace by id. Documents are numbered in the order they come in, whatever part they go to.
    ``within``: replace, and link to, only what the filter allows."""
    for item in batch:
        _check(item)
    known = _known(connection, place, [item.document.id for item in batch])
    if within is not None:
        check_within(batch, known, partial(visible, connection, place.parts), within)
    fresh = [item for item in batch if item.document.id not in known]
    if within is not None:  # an id that was another's before: what was said of it is not for this caller
        judgements.forget_of(connection, place.root, [item.document.id for item in fresh])
    first = take(connection, place, "document", len(fresh)) if fresh else 0
    dealt: dict[Part, _Share] = {}
    for item in batch:
        share = dealt.setdefault(place.parts.of_id(item.document.id), _Share([], []))
        if item.document.id in known:
            share.changed.append((item, known[item.document.id]))
    for at, item in enumerate(fresh, start=first):
        part = place.parts.of_id(item.document.id)
        dealt[part].fresh.append((part.number(at), item))
    done = Written(0, 0, 0)
    for part in sorted(dealt, key=lambda part: part.cid):  # in one order, so that two writers never wait in a ring
        done += _write(connection, place, part, mid, dealt[part], now, within)
    links.add(connection, place.root, [link for item in batch for link in item.links or ()])
    count(connection, place, documents=len(fresh))
    return done


@dataclass(frozen=True, slots=True)
class _Share:
    """What of a batch goes to one part."""

    fresh: list[tuple[int, Prepared]]
    changed: list[tuple[Prepared, tuple[Any, ...]]]  # with the row that is there


def _write(
    connection: Connection,
    place: Place,
    part: Part,
    mid: int | None,
    share: _Share,
    now: float,
    within: Filter | None,
) -> Written:
    cid = part.cid
    if share.fresh:
        with connection.cursor().copy(f"COPY documents (cid, {_ROW}) FROM STDIN") as copy:
            for did, item in share.fresh:
                copy.write_row((cid, *_row(did, item, item.document.created, now)))
    _add_fields(connection, cid, share.fresh)
    moved: list[tuple[int, Prepared]] = []
    embedded: dict[int, dict[tuple[int, bytes], bytes]] = {}
    unchanged = 0
    for item, old in share.changed:
        kept = _replace(connection, place, part, item, old, now, within)
        if kept is None:
            unchanged += 1
        elif kept:
            did = int(old[0])
            embedded[did] = vectors.embedded(connection, cid, did) if item.vector is None else {}
            remove_passages(connection, place, [did])
            moved.append((did, item))
    pids = _add_passages(connection, place, part, mid, [*share.fresh, *moved])
    vectors.give_back(connection, place.parts, part, embedded)
    return Written(len(share.fresh), len(share.changed) - unchanged, unchanged, tuple(pids))


def _replace(
    connection: Connection,
    place: Place,
    part: Part,
    item: Prepared,
    old: tuple[Any, ...],
    now: float,
    within: Filter | None,
) -> bool | None:
    """Bring the document's row up to date. None: it says what it said; True: its passages must be made anew."""
    cid, did = part.cid, int(old[0])
    row = _row(did, item, item.document.created or _time(old[7]), now, old[9], int(old[12]))
    outgoing = _outgoing(connection, place, item.document.id, within) if item.links is not None else set()
    relinked = item.links is not None and outgoing != set(item.links)
    same = all(value == known for at, (value, known) in enumerate(zip(row, old, strict=True)) if at not in (8, 12))
    if same and item.vector is None and not relinked:
        if row[12] != old[12]:
            connection.execute("UPDATE documents SET accesses = %s WHERE cid = %s AND did = %s", (row[12], cid, did))
        return None
    if relinked:
        links.remove(connection, place.root, outgoing)
    names = [name.strip() for name in _ROW.split(",")[1:]]
    sets = ", ".join(f"{name} = %s" for name in names)
    connection.execute(f"UPDATE documents SET {sets} WHERE cid = %s AND did = %s", (*row[1:], cid, did))
    if old[5] != item.meta:
        connection.execute("DELETE FROM fields WHERE cid = %s AND did = %s", (cid, did))
        _add_fields(connection, cid, [(did, item)])
    told = '"triples"' in old[5] or '"triples"' in item.meta
    # what a document tells of is read with its passages, and a projection hears of new passages only
    retold = told and triples_of(json.loads(old[5])) != triples_of(item.document.meta)
    return bytes(old[14]) != item.hash or item.vector is not None or retold


def _outgoing(connection: Connection, place: Place, identifier: str, within: Filter | None) -> set[Link]:
    """The links that go out from a document; within a filter, those to what it shows."""
    found = links.outgoing(connection, place.root, identifier)
    if within is None:
        return found
    seen = visible(connection, place.parts, [link.target for link in found], within)
    return {link for link in found if link.target in seen}


def _check(item: Prepared) -> None:
    """A key that no index has room for is refused by name; nothing is dropped in silence."""
    document = item.document
    for key, _ in flatten(document.meta):
        if len(key) > MAX_KEY:
            raise InputError(f"document {document.id!r}: meta {key[:40]!r}… is longer than {MAX_KEY} characters")


def _row(
    did: int,
    item: Prepared,
    created: datetime | None,
    now: float,
    accessed: float | None = None,
    accesses: int = 0,
) -> tuple[Any, ...]:
    document = item.document
    return (
        did,
        document.id,
        document.title,
        document.text,
        document.kind,
        item.meta,
        float(document.importance),
        created.timestamp() if created else now,
        document.updated.timestamp() if document.updated else now,
        document.accessed.timestamp() if document.accessed else accessed,  # writing it again is not forgetting it
        document.valid_from.timestamp() if document.valid_from else None,
        document.valid_to.timestamp() if document.valid_to else None,
        max(document.accesses, accesses),  # a count never goes down
        document.expires.timestamp() if document.expires else None,
        item.hash,
    )


def _known(connection: Connection, place: Place, ids: list[str]) -> dict[str, tuple[Any, ...]]:
    sql = f"SELECT {_ROW} FROM documents WHERE cid = %s AND id = ANY(%s)"
    dealt = place.parts.by_id(ids)
    return {row[1]: row for part in dealt for row in connection.execute(sql, (part.cid, dealt[part]))}


def _add_fields(connection: Connection, cid: int, rows: Sequence[tuple[int, Prepared]]) -> None:
    found = [(did, dict.fromkeys(flatten(item.document.meta))) for did, item in rows if item.document.meta]
    if not found:
        return
    with connection.cursor().copy("COPY fields (cid, did, place, key, said, number) FROM STDIN") as copy:
        for did, pairs in found:
            for place, (key, value) in enumerate(pairs):
                text = is_text(value)
                copy.write_row((cid, did, place, key, value if text else None, None if text else number_of(value)))


def _add_passages(
    connection: Connection, place: Place, part: Part, mid: int | None, rows: Sequence[tuple[int, Prepared]]
) -> list[int]:
    total = sum(len(item.passages) for _, item in rows)
    if not total:
        return []
    cid, at = part.cid, take(connection, place, "passage", total)
    pids: list[int] = []
    brought: list[tuple[int, int, bytes]] = []
    spelt: list[tuple[int, int, str]] = []
    counts: Counter[str] = Counter()
    length = 0
    columns = "cid, pid, did, ordinal, start, stop, hash, length, body, words"
    with connection.cursor().copy(f"COPY passages ({columns}) FROM STDIN") as copy:
        for did, item in rows:
            title = item.document.title
            heavy = place.analyzer.terms(title) if title else []
            for ordinal, start, stop, digest in item.passages:
                text = item.document.text[start:stop]
                body = f"{title}\n{text}" if title else text
                words = place.analyzer.terms(body)
                pid = part.number(at)
                vector = terms.vector(words, heavy)
                copy.write_row((cid, pid, did, ordinal, start, stop, digest, len(words), body, vector))
                spelt.append((pid, did, terms.line(words) if place.words else ""))
                if item.vector is not None:
                    brought.append((pid, did, item.vector))
                counts.update(set(words))
                length += len(words)
                pids.append(pid)
                at += 1
    add_words(connection, place, spelt)
    _count_terms(connection, cid, counts)
    count(connection, place, passages=total, words=length)
    if brought and mid is not None:
        vectors.store(connection, place.root, part, mid, brought)
    return pids


def _count_terms(connection: Connection, cid: int, counts: Mapping[str, int]) -> None:
    connection.execute(
        "INSERT INTO lexicon AS l (cid, term, passages) SELECT %s, x.term, x.n "
        "FROM unnest(%s::text[], %s::bigint[]) AS x(term, n) "
        "ON CONFLICT (cid, term) DO UPDATE SET passages = l.passages + excluded.passages",
        (cid, list(counts), list(counts.values())),
    )


def recount_terms(connection: Connection, cid: int) -> None:
    """Make the lexicon anew from the passages."""
    connection.execute("DELETE FROM lexicon WHERE cid = %s", (cid,))
    connection.execute(
        "INSERT INTO lexicon (cid, term, passages) SELECT p.cid, t.term, count(*) FROM passages p, "
        "unnest(tsvector_to_array(p.words)) AS t(term) WHERE p.cid = %s GROUP BY p.cid, t.term",
        (cid,),
    )


def add_words(connection: Connection, place: Place, rows: Iterable[tuple[int, int, str]]) -> None:
    if place.words:
        with connection.cursor().copy(f"COPY {place.words} (pid, did, words) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)


# --- reading ----------------------------------------------------------------------------------------------------------


def find(connection: Connection, parts: Parts, identifier: str) -> Document | None:
    sql = f"SELECT {COLUMNS} FROM documents WHERE cid = %s AND id = %s"
    row = connection.execute(sql, (parts.of_id(identifier).cid, identifier)).fetchone()
    return document_of(row) if row else None


def visible(connection: Connection, parts: Parts, ids: Sequence[str], where: Filter | None) -> set[str]:
    """Those of the ids whose document is here and is allowed by the filter."""
    sql = f"SELECT {COLUMNS} FROM documents WHERE cid = %s AND id = ANY(%s)"
    rows = (row for part, own in parts.by_id(ids).items() for row in connection.execute(sql, (part.cid, own)))
    return {row[1] for row in rows if where is None or matches(where, document_of(row))}


def twin(
    connection: Connection, parts: Parts, item: Prepared, same: Callable[[Document], bool], likely: Sequence[int]
) -> Document | None:
    """A document that is the same, found by its text's hash or among the ``likely``; not one that is superseded."""
    named = parts.by_number(likely)
    rows: list[tuple[Any, ...]] = []
    for part in parts.every:
        rows += connection.execute(
            f"SELECT {COLUMNS} FROM documents d WHERE d.cid = %s AND (d.did = ANY(%s) OR d.did IN "
            "(SELECT did FROM passages WHERE cid = %s AND hash = %s AND ordinal = 0)) AND d.kind = %s AND d.meta = %s",
            (part.cid, named.get(part, []), part.cid, item.passages[0][3], item.document.kind, item.meta),
        ).fetchall()
    alike = [found for found in map(document_of, sorted(rows, key=lambda row: row[0])) if same(found)]
    ask = links.asking(connection)
    gone = {old for old, _ in links.superseded(ask, parts, [found.id for found in alike], None)} if alike else set()
    return next((found for found in alike if found.id not in gone), None)


def touch(connection: Connection, parts: Parts, ids: Sequence[str], at: float) -> int:
    """Count one access of each; an id that is not here is passed over. Returns how many were."""
    # A clock that was set back, or a slower process, must not make the last access an earlier one.
    sql = (
        "UPDATE documents SET accesses = accesses + 1, accessed = greatest(coalesce(accessed, %s), %s) "
        "WHERE cid = %s AND id = ANY(%s)"
    )
    dealt = parts.by_id(ids)
    return sum(
        connection.execute(sql, (at, at, part.cid, dealt[part])).rowcount
        for part in sorted(dealt, key=lambda part: part.cid)
    )


def prolong(connection: Connection, parts: Parts, identifier: str, at: datetime | None) -> None:
    """Let a document that is told again live as long as the longer of both says."""
    until = at.timestamp() if at else None
    connection.execute(
        "UPDATE documents SET expires = %s WHERE cid = %s AND id = %s AND (%s::float8 IS NULL OR expires < %s)",
        (until, parts.of_id(identifier).cid, identifier, until, until),
    )


def document_of(row: tuple[Any, ...]) -> Document:
    _, identifier, title, text, kind, meta, importance, created, updated, accessed, *bounds, accesses, expires = row
    try:
        return Document(
            identifier,
            text,
            title,
            kind,
            json.loads(meta),
            importance,
            datetime.fromtimestamp(created, UTC),
            datetime.fromtimestamp(updated, UTC),
            _time(accessed),
            _time(bounds[0]),
            _time(bounds[1]),
            accesses,
            _time(expires),
        )
    except (ValueError, TypeError, OverflowError) as error:  # somebody else wrote to our tables
        raise StoreError(f"store: the row of document {identifier!r} is damaged ({error}); restore a backup") from error


def spans(rows: Iterable[tuple[Any, ...]]) -> dict[int, Span]:
    """pid → (did, ordinal, start, stop)."""
    return {pid: (did, ordinal, start, stop) for pid, did, ordinal, start, stop in rows}


def _time(value: float | None) -> datetime | None:
    return None if value is None else datetime.fromtimestamp(value, UTC)
