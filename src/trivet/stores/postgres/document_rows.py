"""Writing documents, and reading them inside of a write transaction.

New rows are loaded with COPY. The passages, vectors and fields of a document are deleted with it by the foreign keys.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from trivet.errors import InputError, StoreError
from trivet.filters import Filter, flatten, is_text, matches
from trivet.stores.contract import Prepared, Written
from trivet.stores.postgres import link_rows, terms, vector_rows
from trivet.stores.postgres.database import Connection
from trivet.stores.postgres.filter_sql import number_of
from trivet.stores.postgres.removals import remove_feedback, remove_passages
from trivet.stores.postgres.rows import Rows
from trivet.stores.postgres.tables import MAX_PARTS
from trivet.stores.postgres.transaction import Transaction
from trivet.stores.scoped import check_within
from trivet.text.concepts import triples_of
from trivet.types import Document, Link

#: The columns that ``document_of`` takes, in order.
COLUMNS = (
    "did, id, title, text, kind, meta, importance, created, updated, accessed, valid_from, valid_to, accesses, expires"
)
_ROW = f"{COLUMNS}, hash"
_UPDATED, _ACCESSES = 8, 12  # columns whose change alone is not a change of the document
MAX_KEY = 500  # characters of a metadata key, which is part of an index


def write(
    transaction: Transaction, mid: int | None, batch: Sequence[Prepared], within: Filter | None = None
) -> Written:
    """Insert documents, or replace them by id; ``within``: replace, and link to, only what the filter allows."""
    for item in batch:
        _check_keys(item)
    known = _known(transaction, [item.document.id for item in batch])
    if within is not None:
        check_within(batch, known, partial(visible, transaction), within)
    new = [item for item in batch if item.document.id not in known]
    if within is not None:  # feedback on an earlier document with this id is not for this caller
        remove_feedback(transaction, [item.document.id for item in new])
    first = transaction.take("document", len(new)) if new else 0
    tables = transaction.tables
    fresh = [(tables.number(at, tables.slot_of(item.document.id)), item) for at, item in enumerate(new, start=first)]
    changed = [(item, known[item.document.id]) for item in batch if item.document.id in known]
    # in microseconds, as a datetime has them: otherwise a document read and written again would differ
    written = _write(transaction, mid, fresh, changed, datetime.now(UTC).timestamp(), within)
    link_rows.add(transaction, [link for item in batch for link in item.links or ()])
    transaction.count(documents=len(new))
    return written


def _write(
    transaction: Transaction,
    mid: int | None,
    fresh: Sequence[tuple[int, Prepared]],
    changed: Sequence[tuple[Prepared, tuple[Any, ...]]],
    now: float,
    within: Filter | None,
) -> Written:
    """Write new documents with their numbers, and changed ones with the row that is there."""
    tables = transaction.tables
    if fresh:
        statement = f"COPY {tables.documents} ({tables.key}, {_ROW}) FROM STDIN"
        with transaction.connection.cursor().copy(statement) as copy:
            for did, item in fresh:
                copy.write_row((*tables.key_of(did), *_row(did, item, item.document.created, now)))
    _add_fields(transaction, fresh)
    rewritten: list[tuple[int, Prepared]] = []
    embedded: dict[int, dict[tuple[int, bytes], bytes]] = {}
    unchanged, bare = 0, _without_passages(transaction, [int(old[0]) for _, old in changed])
    for item, old in changed:
        new_passages = _replace(transaction, item, old, now, within, again=int(old[0]) in bare)
        if new_passages is None:
            unchanged += 1
        elif new_passages:
            did = int(old[0])
            embedded[did] = vector_rows.of_document(transaction, did) if item.vector is None else {}
            remove_passages(transaction, [did])
            rewritten.append((did, item))
    pids = _add_passages(transaction, mid, [*fresh, *rewritten])
    vector_rows.restore(transaction, embedded)
    return Written(len(fresh), len(changed) - unchanged, unchanged, tuple(pids))


def _replace(
    transaction: Transaction,
    item: Prepared,
    old: tuple[Any, ...],
    now: float,
    within: Filter | None,
    again: bool,
) -> bool | None:
    """Update the row of a document; return None where nothing changed, True where its passages must be made again.

    ``again``: it has lost them.
    """
    did = int(old[0])
    this, where = transaction.tables.having("did", [did])
    row = _row(did, item, item.document.created or _time(old[7]), now, old[9], int(old[_ACCESSES]))
    outgoing = _outgoing(transaction, item.document.id, within) if item.links is not None else set()
    relinked = item.links is not None and outgoing != set(item.links)
    pairs = enumerate(zip(row, old, strict=True))
    same = all(value == known for at, (value, known) in pairs if at not in (_UPDATED, _ACCESSES))
    if same and item.vector is None and not relinked and not again:
        if row[_ACCESSES] != old[_ACCESSES]:
            sql = f"UPDATE {transaction.tables.documents} SET accesses = %s WHERE {this}"
            transaction.execute(sql, (row[_ACCESSES], *where))
        return None
    if relinked:
        link_rows.remove(transaction, outgoing)
    sets = ", ".join(f"{name.strip()} = %s" for name in _ROW.split(",")[1:])
    transaction.execute(f"UPDATE {transaction.tables.documents} SET {sets} WHERE {this}", (*row[1:], *where))
    if old[5] != item.meta:
        transaction.execute(f"DELETE FROM {transaction.tables.fields} WHERE {this}", where)
        _add_fields(transaction, [(did, item)])
    has_triples = '"triples"' in old[5] or '"triples"' in item.meta
    # the graph index reads the triples of a document with its passages, and looks at new passages only
    new_triples = has_triples and triples_of(json.loads(old[5])) != triples_of(item.document.meta)
    return bytes(old[14]) != item.hash or item.vector is not None or new_triples or again


def _without_passages(transaction: Transaction, dids: list[int]) -> set[int]:
    """Return those of the documents that have no passage: a transaction on another node of a cluster was lost."""
    tables = transaction.tables
    missing = f" AND NOT EXISTS (SELECT 1 FROM {tables.passages} p WHERE {tables.beside('p', 'd')} AND p.did = d.did)"
    head = f"SELECT d.did FROM {tables.documents} d"
    return {did for (did,) in transaction.by_number(head, "d.did", dids, missing)} if dids else set()


def _outgoing(transaction: Transaction, id: str, within: Filter | None) -> set[Link]:
    """Return the links from a document; with a filter, those to documents that it allows."""
    found = link_rows.outgoing(transaction, id)
    if within is None:
        return found
    seen = visible(transaction, [link.target for link in found], within)
    return {link for link in found if link.target in seen}


def _check_keys(item: Prepared) -> None:
    for key, _ in flatten(item.document.meta):
        if len(key) > MAX_KEY:
            raise InputError(f"document {item.document.id!r}: meta {key[:40]!r}… is longer than {MAX_KEY} characters")


def _row(
    did: int, item: Prepared, created: datetime | None, now: float, accessed: float | None = None, accesses: int = 0
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
        document.accessed.timestamp() if document.accessed else accessed,  # a rewrite keeps the last access
        document.valid_from.timestamp() if document.valid_from else None,
        document.valid_to.timestamp() if document.valid_to else None,
        max(document.accesses, accesses),  # a count never goes down
        document.expires.timestamp() if document.expires else None,
        item.hash,
    )


def _known(transaction: Transaction, ids: list[str]) -> dict[str, tuple[Any, ...]]:
    rows = transaction.by_id(f"SELECT {_ROW} FROM {transaction.tables.documents}", "id", ids)
    return {row[1]: row for row in rows}


def _add_fields(transaction: Transaction, rows: Sequence[tuple[int, Prepared]]) -> None:
    found = [(did, dict.fromkeys(flatten(item.document.meta))) for did, item in rows if item.document.meta]
    if not found:
        return
    tables = transaction.tables
    statement = f"COPY {tables.fields} ({tables.key}, did, place, key, said, number) FROM STDIN"
    with transaction.connection.cursor().copy(statement) as copy:
        for did, pairs in found:
            for place, (key, value) in enumerate(pairs):
                text = is_text(value)
                copy.write_row(
                    (*tables.key_of(did), did, place, key, value if text else None, None if text else number_of(value))
                )


def _add_passages(transaction: Transaction, mid: int | None, rows: Sequence[tuple[int, Prepared]]) -> list[int]:
    """Insert the passages of documents with their terms and the vectors that came with them; return their numbers."""
    total = sum(len(item.passages) for _, item in rows)
    if not total:
        return []
    at, analyzer, tables = transaction.take("passage", total), transaction.analyzer, transaction.tables
    pids: list[int] = []
    vectors: list[tuple[int, int, bytes]] = []
    lines: list[tuple[int, int, str]] = []
    frequencies: Counter[str] = Counter()
    length = 0
    columns = f"{tables.key}, pid, did, ordinal, start, stop, hash, length, body, words"
    with transaction.connection.cursor().copy(f"COPY {tables.passages} ({columns}) FROM STDIN") as copy:
        for did, item in rows:
            title = item.document.title
            title_terms = analyzer.terms(title) if title else []
            for ordinal, start, stop, digest in item.passages:
                text = item.document.text[start:stop]
                body = f"{title}\n{text}" if title else text
                found = analyzer.terms(body)
                pid = tables.number(at, did % MAX_PARTS)
                row = (pid, did, ordinal, start, stop, digest, len(found), body, terms.tsvector(found, title_terms))
                copy.write_row((*tables.key_of(did), *row))
                if transaction.bm25_table:
                    lines.append((pid, did, terms.line(found)))
                if item.vector is not None:
                    vectors.append((pid, did, item.vector))
                frequencies.update(set(found))
                length += len(found)
                pids.append(pid)
                at += 1
    if transaction.bm25_table:
        add_lines(transaction.connection, transaction.bm25_table, lines)
    transaction.count_terms(frequencies)
    transaction.count(passages=total, terms=length)
    if vectors and mid is not None:
        vector_rows.insert(transaction, mid, vectors)
    return pids


def recount_terms(transaction: Transaction) -> None:
    """Make the lexicon again from the passages."""
    tables = transaction.tables
    transaction.execute(f"DELETE FROM lexicon WHERE {tables.of()}")
    transaction.execute(
        f"INSERT INTO lexicon (cid, term, passages) SELECT p.cid, t.term, count(*) FROM {tables.passages} p, "
        f"unnest(tsvector_to_array(p.words)) AS t(term) WHERE {tables.of('p')} GROUP BY p.cid, t.term"
    )


def add_lines(connection: Connection, table: str, rows: Iterable[tuple[int, int, str]]) -> None:
    """Add (passage, document, terms as text) to the table for pg_textsearch."""
    with connection.cursor().copy(f"COPY {table} (pid, did, words) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


# --- reading ----------------------------------------------------------------------------------------------------------


def find(transaction: Transaction, id: str) -> Document | None:
    """Return a document by its id."""
    rows = transaction.by_id(f"SELECT {COLUMNS} FROM {transaction.tables.documents}", "id", [id])
    return document_of(rows[0]) if rows else None


def visible(source: Rows | Transaction, ids: Sequence[str], where: Filter | None) -> set[str]:
    """Return those of the ids whose document exists and is allowed by the filter."""
    rows = source.by_id(f"SELECT {COLUMNS} FROM {source.tables.documents}", "id", ids)
    return {row[1] for row in rows if where is None or matches(where, document_of(row))}


def find_duplicate(
    transaction: Transaction, item: Prepared, same: Callable[[Document], bool], likely: Sequence[int]
) -> Document | None:
    """Return a document that is the same, by the hash of its text or among the ``likely``, and not superseded."""
    tables = transaction.tables
    rows = transaction.all(
        f"SELECT {COLUMNS} FROM {tables.documents} d WHERE {tables.of('d')} AND (d.did = ANY(%s) OR EXISTS "
        f"(SELECT 1 FROM {tables.passages} p WHERE {tables.beside('p', 'd')} AND p.did = d.did AND p.hash = %s "
        "AND p.ordinal = 0)) AND d.kind = %s AND d.meta = %s",
        (list(likely), item.passages[0][3], item.document.kind, item.meta),
    )
    found = [document for document in map(document_of, sorted(rows, key=lambda row: row[0])) if same(document)]
    if not found:
        return None
    pairs = link_rows.superseded(transaction.all, tables, [document.id for document in found], None)
    superseded = {old for old, _ in pairs}
    return next((document for document in found if document.id not in superseded), None)


def touch(transaction: Transaction, ids: Sequence[str]) -> int:
    """Count one access of each document; return how many of them exist."""
    condition, values = transaction.tables.having_id("id", ids)
    # the last access never moves back, also where a clock was set back
    counted = "accesses = accesses + 1, accessed = greatest(coalesce(accessed, %s), %s)"
    sql, now = f"UPDATE {transaction.tables.documents} SET {counted} WHERE {condition}", time.time()
    return transaction.execute(sql, (now, now, *values)).rowcount


def reinforce(transaction: Transaction, known: Document, importance: float, expires: datetime | None) -> None:
    """Count an access, set the importance, and let the document live as long as the longer of both expiries says."""
    touch(transaction, [known.id])
    table, (this, where) = transaction.tables.documents, transaction.tables.having_id("id", [known.id])
    transaction.execute(f"UPDATE {table} SET importance = %s WHERE {this}", (importance, *where))
    until = expires.timestamp() if expires else None
    sql = f"UPDATE {table} SET expires = %s WHERE {this} AND (%s::float8 IS NULL OR expires < %s)"
    transaction.execute(sql, (until, *where, until, until))


def document_of(row: tuple[Any, ...]) -> Document:
    """Make a document of a row with ``COLUMNS``."""
    _, id, title, text, kind, meta, importance, created, updated, accessed, *bounds, accesses, expires = row
    try:
        return Document(
            id,
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
    except (ValueError, TypeError, OverflowError) as error:  # another program wrote to our tables
        raise StoreError(f"store: the row of document {id!r} is damaged ({error}); restore a backup") from error


def _time(value: float | None) -> datetime | None:
    return None if value is None else datetime.fromtimestamp(value, UTC)
