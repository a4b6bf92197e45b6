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
from typing import Any

from trivet.analysis import Analyzer
from trivet.concepts import triples_of
from trivet.errors import InputError, StoreError
from trivet.filters import flatten, is_text
from trivet.stores.contract import Prepared, Span, Written
from trivet.stores.postgres import links, terms, vectors
from trivet.stores.postgres.database import Connection
from trivet.stores.postgres.filter_sql import number_of
from trivet.types import SUPERSEDES, Document

#: Document, in order
COLUMNS = "did, id, title, text, kind, meta, importance, created, updated, accessed, valid_from, valid_to, accesses"
_ROW = f"{COLUMNS}, hash"
MAX_KEY = 500  # characters of a metadata key: it is part of an index


@dataclass(frozen=True, slots=True)
class Place:
    """The collection a record goes to, and how its words are made."""

    cid: int
    analyzer: Analyzer
    words: str | None = None  # its table of words for BM25, if there is one


def write(connection: Connection, place: Place, mid: int | None, batch: Sequence[Prepared], now: float) -> Written:
    """Insert or replace by id."""
    for item in batch:
        _check(item)
    cid = place.cid
    known = _known(connection, cid, [item.document.id for item in batch])
    fresh = [item for item in batch if item.document.id not in known]
    changed = [(item, known[item.document.id]) for item in batch if item.document.id in known]
    first = _take(connection, cid, "document", len(fresh)) if fresh else 0
    rows = [(first + index, item) for index, item in enumerate(fresh)]
    if rows:
        with connection.cursor().copy(f"COPY documents (cid, {_ROW}) FROM STDIN") as copy:
            for did, item in rows:
                copy.write_row((cid, *_row(did, item, item.document.created, now)))
    _add_fields(connection, cid, rows)
    moved: list[tuple[int, Prepared]] = []
    embedded: dict[int, dict[tuple[int, bytes], bytes]] = {}
    unchanged = 0
    for item, old in changed:
        kept = _replace(connection, place, item, old, now)
        if kept is None:
            unchanged += 1
        elif kept:
            did = int(old[0])
            embedded[did] = vectors.embedded(connection, cid, did) if item.vector is None else {}
            remove_passages(connection, place, [did])
            moved.append((did, item))
    pids = _add_passages(connection, place, mid, [*rows, *moved])
    vectors.give_back(connection, cid, embedded)
    links.add(connection, cid, [link for item in batch for link in item.links or ()])
    _count(connection, cid, documents=len(fresh))
    return Written(len(fresh), len(changed) - unchanged, unchanged, tuple(pids))


def _replace(connection: Connection, place: Place, item: Prepared, old: tuple[Any, ...], now: float) -> bool | None:
    """Bring the document's row up to date. None: it says what it said; True: its passages must be made anew."""
    cid, did = place.cid, int(old[0])
    row = _row(did, item, item.document.created or _time(old[7]), now, old[9], int(old[12]))
    relinked = item.links is not None and links.outgoing(connection, cid, item.document.id) != set(item.links)
    same = all(value == known for at, (value, known) in enumerate(zip(row, old, strict=True)) if at not in (8, 12))
    if same and item.vector is None and not relinked:
        if row[12] != old[12]:
            connection.execute("UPDATE documents SET accesses = %s WHERE cid = %s AND did = %s", (row[12], cid, did))
        return None
    if relinked:
        links.remove_from(connection, cid, item.document.id)
    names = [name.strip() for name in _ROW.split(",")[1:]]
    sets = ", ".join(f"{name} = %s" for name in names)
    connection.execute(f"UPDATE documents SET {sets} WHERE cid = %s AND did = %s", (*row[1:], cid, did))
    if old[5] != item.meta:
        connection.execute("DELETE FROM fields WHERE cid = %s AND did = %s", (cid, did))
        _add_fields(connection, cid, [(did, item)])
    told = '"triples"' in old[5] or '"triples"' in item.meta
    # what a document tells of is read with its passages, and a projection hears of new passages only
    retold = told and triples_of(json.loads(old[5])) != triples_of(item.document.meta)
    return bytes(old[13]) != item.hash or item.vector is not None or retold


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
        item.hash,
    )


def _known(connection: Connection, cid: int, ids: list[str]) -> dict[str, tuple[Any, ...]]:
    sql = f"SELECT {_ROW} FROM documents WHERE cid = %s AND id = ANY(%s)"
    return {row[1]: row for row in connection.execute(sql, (cid, ids))}


def _take(connection: Connection, cid: int, counter: str, amount: int) -> int:
    """Reserve ``amount`` numbers; the first of them is returned."""
    sql = f"UPDATE heads SET last_{counter} = last_{counter} + %s WHERE cid = %s RETURNING last_{counter}"
    row = connection.execute(sql, (amount, cid)).fetchone()
    assert row is not None, "the caller holds the lock on this row"
    return int(row[0]) - amount + 1


def _count(connection: Connection, cid: int, *, documents: int = 0, passages: int = 0, words: int = 0) -> None:
    if documents or passages or words:
        connection.execute(
            "UPDATE heads SET documents = documents + %s, passages = passages + %s, terms = terms + %s WHERE cid = %s",
            (documents, passages, words, cid),
        )


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
    connection: Connection, place: Place, mid: int | None, rows: Sequence[tuple[int, Prepared]]
) -> list[int]:
    count = sum(len(item.passages) for _, item in rows)
    if not count:
        return []
    cid, pid = place.cid, _take(connection, place.cid, "passage", count)
    pids: list[int] = []
    brought: list[tuple[int, int, bytes]] = []
    spelt: list[tuple[int, int, str]] = []
    counts: Counter[str] = Counter()
    total = 0
    columns = "cid, pid, did, ordinal, start, stop, hash, length, body, words"
    with connection.cursor().copy(f"COPY passages ({columns}) FROM STDIN") as copy:
        for did, item in rows:
            title = item.document.title
            heavy = place.analyzer.terms(title) if title else []
            for ordinal, start, stop, digest in item.passages:
                text = item.document.text[start:stop]
                body = f"{title}\n{text}" if title else text
                words = place.analyzer.terms(body)
                vector = terms.vector(words, heavy)
                copy.write_row((cid, pid, did, ordinal, start, stop, digest, len(words), body, vector))
                spelt.append((pid, did, terms.line(words) if place.words else ""))
                if item.vector is not None:
                    brought.append((pid, did, item.vector))
                counts.update(set(words))
                total += len(words)
                pids.append(pid)
                pid += 1
    add_words(connection, place, spelt)
    _count_terms(connection, cid, counts)
    _count(connection, cid, passages=count, words=total)
    if brought and mid is not None:
        vectors.store(connection, cid, mid, brought)
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


# --- taking away ------------------------------------------------------------------------------------------------------


def remove_passages(connection: Connection, place: Place, dids: Sequence[int]) -> None:
    cid, wanted = place.cid, list(dids)
    sql = "SELECT mid, count(*) FROM vectors WHERE cid = %s AND pid IN ({}) GROUP BY mid"
    of_documents = "SELECT pid FROM passages WHERE cid = %s AND did = ANY(%s)"
    for mid, count in connection.execute(sql.format(of_documents), (cid, cid, wanted)).fetchall():
        change = "UPDATE models SET vectors = vectors - %s WHERE cid = %s AND mid = %s"
        connection.execute(change, (count, cid, mid))
    connection.execute(
        "UPDATE lexicon l SET passages = l.passages - x.n FROM (SELECT t.term, count(*) AS n FROM passages p, "
        "unnest(tsvector_to_array(p.words)) AS t(term) WHERE p.cid = %s AND p.did = ANY(%s) GROUP BY t.term) x "
        "WHERE l.cid = %s AND l.term = x.term",
        (cid, wanted, cid),
    )
    gone = connection.execute(
        "DELETE FROM passages WHERE cid = %s AND did = ANY(%s) RETURNING pid, length", (cid, wanted)
    ).fetchall()
    if gone:
        first = _take(connection, cid, "removed", len(gone))
        with connection.cursor().copy("COPY removed (cid, seq, pid) FROM STDIN") as copy:
            for at, (pid, _) in enumerate(gone):
                copy.write_row((cid, first + at, pid))
    if place.words and gone:
        connection.execute(f"DELETE FROM {place.words} WHERE pid = ANY(%s)", ([pid for pid, _ in gone],))
    _count(connection, cid, passages=-len(gone), words=-sum(length for _, length in gone))


def remove(connection: Connection, place: Place, dids: Sequence[int]) -> int:
    """Delete documents with everything that hangs on them."""
    cid = place.cid
    remove_passages(connection, place, dids)
    sql = "DELETE FROM documents WHERE cid = %s AND did = ANY(%s) RETURNING id"
    gone = [identifier for (identifier,) in connection.execute(sql, (cid, list(dids)))]
    links.remove_of(connection, cid, gone)
    _count(connection, cid, documents=-len(gone))
    return len(gone)


# --- reading ----------------------------------------------------------------------------------------------------------


def find(connection: Connection, cid: int, identifier: str) -> Document | None:
    sql = f"SELECT {COLUMNS} FROM documents WHERE cid = %s AND id = %s"
    row = connection.execute(sql, (cid, identifier)).fetchone()
    return document_of(row) if row else None


def twin(
    connection: Connection, cid: int, item: Prepared, same: Callable[[Document], bool], likely: Sequence[int]
) -> Document | None:
    """A document that is the same, found by its text's hash or among the ``likely``; not one that is superseded."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM documents d WHERE d.cid = %s AND (d.did = ANY(%s) OR d.did IN "
        "(SELECT did FROM passages WHERE cid = %s AND hash = %s AND ordinal = 0)) AND d.kind = %s AND d.meta = %s "
        "AND NOT EXISTS (SELECT 1 FROM links l JOIN documents n ON n.cid = l.cid AND n.id = l.source "
        "WHERE l.cid = %s AND l.target = d.id AND l.source <> l.target AND l.type = %s) ORDER BY d.did",
        (cid, list(likely), cid, item.passages[0][3], item.document.kind, item.meta, cid, SUPERSEDES),
    ).fetchall()
    return next((document for document in map(document_of, rows) if same(document)), None)


def touch(connection: Connection, cid: int, ids: Sequence[str], at: float) -> int:
    """Count one access of each; an id that is not here is passed over. Returns how many were."""
    # A clock that was set back, or a slower process, must not make the last access an earlier one.
    sql = (
        "UPDATE documents SET accesses = accesses + 1, accessed = greatest(coalesce(accessed, %s), %s) "
        "WHERE cid = %s AND id = ANY(%s)"
    )
    return connection.execute(sql, (at, at, cid, list(ids))).rowcount


def document_of(row: tuple[Any, ...]) -> Document:
    _, identifier, title, text, kind, meta, importance, created, updated, accessed, valid_from, valid_to, accesses = row
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
            _time(valid_from),
            _time(valid_to),
            accesses,
        )
    except (ValueError, TypeError, OverflowError) as error:  # somebody else wrote to our tables
        raise StoreError(f"store: the row of document {identifier!r} is damaged ({error}); restore a backup") from error


def spans(rows: Iterable[tuple[Any, ...]]) -> dict[int, Span]:
    """pid → (did, ordinal, start, stop)."""
    return {pid: (did, ordinal, start, stop) for pid, did, ordinal, start, stop in rows}


def _time(value: float | None) -> datetime | None:
    return None if value is None else datetime.fromtimestamp(value, UTC)
