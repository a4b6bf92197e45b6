"""A check that every row is what was written.

SQLite's own check covers its pages and indexes, but not a flipped bit inside a text. Here every text is compared with
its hash, every passage with its text, the flattened metadata with the metadata, and every vector with its checksum. The
check reads one state of the file, whatever is written meanwhile.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from trivet.filters import flatten

NAMED = 20  # problems of one kind that are listed; more are counted


def problems(connection: sqlite3.Connection) -> list[str]:
    """Return the problems of all collections. ``connection`` sees one state and is used for nothing else."""
    connection.text_factory = bytes  # damaged text may not be UTF-8
    names = {cid: _shown(name) for cid, name in connection.execute("SELECT cid, name FROM collections")}
    found = list(_first(_counters(connection)))
    for cid, name in names.items():
        listed = _first((*_documents(connection, cid), *_removed(connection, cid)))
        found += [f"collection {name!r}: {problem}" for problem in listed]
    found += _first(_vectors(connection))
    return found


def _first(problems: Iterable[str]) -> Iterator[str]:
    """Yield the first problems and the number of the others: a damaged page may have hundreds."""
    number = 0
    for number, problem in enumerate(problems, start=1):
        if number <= NAMED:
            yield problem
    if number > NAMED:
        yield f"and {number - NAMED:,} more of this kind"


def _counters(connection: sqlite3.Connection) -> Iterator[str]:
    """Check that no number in use can be issued again."""
    kept = {_shown(name): value for name, value in connection.execute("SELECT name, value FROM counters")}
    tables = (("document", "documents", "did"), ("passage", "passages", "pid"), ("vector", "vectors", "vid"))
    for name, table, column in (*tables, ("removed", "removed", "seq")):
        (most,) = connection.execute(f"SELECT coalesce(max({column}), 0) FROM {table}").fetchone()
        if not isinstance(kept.get(name), int) or kept[name] < most:
            yield f"counters: {name} stands at {kept.get(name)!r}, but number {most:,} is in use"


def _documents(connection: sqlite3.Connection, cid: int) -> Iterator[str]:
    fields = _fields(connection, cid)
    passages = groupby(
        connection.execute(
            "SELECT did, ordinal, start, stop, hash FROM passages WHERE cid = ? ORDER BY did, ordinal", (cid,)
        ),
        key=itemgetter(0),
    )
    owner, spans = next(passages, (None, iter(())))
    rows = connection.execute(
        "SELECT did, id, title, text, meta, hash FROM documents WHERE cid = ? ORDER BY did", (cid,)
    )
    for did, identifier, title, text, meta, digest in rows:
        while owner is not None and owner < did:
            yield f"passages: those of document number {owner} belong to no document"
            owner, spans = next(passages, (None, iter(())))
        mine = list(spans) if owner == did else []
        if owner == did:
            owner, spans = next(passages, (None, iter(())))
        if wrong := _document(title, text, meta, digest, mine, fields.pop(did, 0)):
            yield f"document {_shown(identifier)!r}: {wrong}"
    if owner is not None:
        yield f"passages: those of document number {owner} belong to no document"
    if fields:
        yield f"fields: values of {len(fields):,} documents that are not here"


def _document(title: Any, text: Any, meta: Any, digest: Any, passages: list[tuple[Any, ...]], fields: int) -> str:
    """Return what is wrong with a document, or an empty text."""
    if not isinstance(title, bytes) or not isinstance(text, bytes) or _digest(title, text) != digest:
        return "its title or text is not what was written"
    whole = text.decode(errors="replace")
    if [span[1] for span in passages] != list(range(len(passages))):
        return "its passages are not all there"
    for _, _, start, stop, kept in passages:
        # a slice beyond the text, or with negative bounds, may have the same characters
        if not (isinstance(start, int) and isinstance(stop, int) and 0 <= start <= stop <= len(whole)):
            return "its passages do not lie in its text"
        if _digest(title, whole[start:stop].encode()) != kept:
            return "its passages are not those of its text"
    try:
        pairs = set(flatten(json.loads(meta)))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return "its metadata cannot be read"
    return "" if _sum(pairs) == fields else "its metadata is not what was written"


def _digest(title: bytes, text: bytes) -> bytes:
    """Return the hash that ``Prepared`` has."""
    return hashlib.blake2b(title + b"\0" + text, digest_size=16).digest()


def _fields(connection: sqlite3.Connection, cid: int) -> dict[int, int]:
    """Map documents to a sum over their flattened metadata, which does not depend on the order."""
    found: dict[int, int] = {}
    for did, key, value in connection.execute("SELECT did, key, value FROM fields WHERE cid = ?", (cid,)):
        pair = (_shown(key), _shown(value) if isinstance(value, bytes) else value)
        found[did] = found.get(did, 0) + hash(pair)
    return found


def _sum(pairs: set[tuple[str, Any]]) -> int:
    return sum(hash((key, int(value) if isinstance(value, bool) else value)) for key, value in pairs)


def _removed(connection: sqlite3.Connection, cid: int) -> Iterator[str]:
    sql = "SELECT count(*) FROM removed r JOIN passages p ON p.pid = r.pid WHERE r.cid = ?"
    (count,) = connection.execute(sql, (cid,)).fetchone()
    if count:
        yield f"removed: {count:,} passages that are said to be gone are here"


def _vectors(connection: sqlite3.Connection) -> Iterator[str]:
    rows = connection.execute(
        "SELECT v.vid, v.pid, v.data, s.sum, m.dim, EXISTS (SELECT 1 FROM passages p WHERE p.pid = v.pid) "
        "FROM vectors v LEFT JOIN seals s ON s.vid = v.vid LEFT JOIN models m ON m.mid = v.mid ORDER BY v.vid"
    )
    for vid, pid, data, seal, dim, owned in rows:
        if dim is None or not owned:
            yield f"vectors: number {vid} is of a model or a passage that is not here"
        elif (
            not isinstance(data, bytes)
            or len(data) not in (2 * dim, 4 * dim)
            or (seal is not None and zlib.crc32(data) != seal)
        ):
            yield f"vectors: number {vid} (passage {pid}) is not what was written"
    (strays,) = connection.execute(
        "SELECT count(*) FROM seals WHERE NOT EXISTS (SELECT 1 FROM vectors WHERE vectors.vid = seals.vid)"
    ).fetchone()
    if strays:
        yield f"checksums: {strays:,} belong to vectors that do not exist"


def _shown(value: Any) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
