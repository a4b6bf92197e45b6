"""Which documents belong together, whatever they say?

Explicit links, the neighbours in a session, and documents that share a rare value of their metadata: read from the
truth when a walk asks, a few dozen index look-ups, because all three change without any passage changing.

*Neighbours in a session* are documents with the same session: the same value under one of ``SESSIONS``, and under
each of ``WITHIN`` that both have (a session's number may be counted anew in every project). Their order is that of
``created``, and of adding where that is the same. What an assistant answered is stepped over: it is made of what it was
told, and beside a right turn it is the wrong one (LongMemEval and BEAM: 0.02 and 0.04 nDCG@10).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trivet.filters import flatten
from trivet.graph.walk import Tie
from trivet.types import SUPERSEDES

#: Names under which metadata keeps a conversation, and what such a name may be counted within.
SESSIONS = ("session", "session_id", "thread", "thread_id", "conversation", "conversation_id", "chat", "dialogue")
WITHIN = ("scope", "project", "user", "user_id", "channel", "room")
#: Who speaks, and the values of those who say nothing but what they were told: a walk steps over their turns.
SPEAKERS = ("role", "speaker", "author", "sender")
ANSWERING = frozenset(("assistant", "ai", "bot", "model", "agent", "system", "tool"))
#: Keys whose values many share in a large collection, and a few by chance in a small one.
_NO_VALUES = frozenset((*SESSIONS, *WITHIN, "role", "speaker", "sender", "triples"))
NEAR = 6  # documents of the session looked at on each side, by adding; the nearest by time is among them
RARE = 8  # documents; a value that more have says nothing of them
LOOKED_AT = 8  # values of a document's metadata
LONGEST = 200  # characters of a value; longer is text, not a value
# Trust in a shared value, beside 1 for a neighbour and its own weight for a link. Alone it is too faint to be an
# answer: at a quarter, the authors' other papers cost the ACL abstracts 0.004 nDCG@10.
SHARED = 0.05
MOST_LINKS = 64  # of one document and direction
HEAVIEST = 5.0  # a link's weight beyond this counts as this

MOST_SHARING = 65_536  # values whose documents are remembered, a few megabytes

_Row = tuple[int, Mapping[str, Any], float]  # document, metadata, created
#: Key and value → the documents that have it, as long as nothing is written; none where they are one or many.
Sharing = dict[tuple[str, str], tuple[int, ...]]


def ties(
    connection: sqlite3.Connection, cid: int, dids: Sequence[int], linked: bool, sharing: Sharing | None = None
) -> list[Tie]:
    """What these documents are tied to; ``linked``: is there any link in the collection? ``sharing`` is filled."""
    rows = _rows(connection, dids)
    found = list(_links(connection, cid, dids)) if linked else []
    known: Sharing = {} if sharing is None else sharing
    for row in rows.values():
        found += _neighbours(connection, cid, row)
        found += _alike(connection, cid, row, known)
    return found


def any_links(connection: sqlite3.Connection, cid: int) -> bool:
    sql = "SELECT 1 FROM links WHERE cid = ? AND type <> ? LIMIT 1"
    return connection.execute(sql, (cid, SUPERSEDES)).fetchone() is not None


def _rows(connection: sqlite3.Connection, dids: Sequence[int]) -> dict[int, _Row]:
    marks = ", ".join("?" * len(dids))
    sql = f"SELECT did, meta, created FROM documents WHERE did IN ({marks})"
    return {did: (did, json.loads(meta), created) for did, meta, created in connection.execute(sql, list(dids))}


def _links(connection: sqlite3.Connection, cid: int, dids: Sequence[int]) -> Iterator[Tie]:
    """Both ways: what is part of something belongs to it, and it to its parts. What is superseded is not looked for."""
    for here, there in (("source", "target"), ("target", "source")):
        sql = (
            f"SELECT o.did, l.type, l.weight FROM documents d JOIN links l ON l.cid = d.cid AND l.{here} = d.id "
            f"JOIN documents o ON o.cid = l.cid AND o.id = l.{there} "
            "WHERE d.did = ? AND d.cid = ? AND l.type <> ? LIMIT ?"
        )
        for did in dids:
            for other, kind, weight in connection.execute(sql, (did, cid, SUPERSEDES, MOST_LINKS)):
                yield Tie(did, other, min(weight, HEAVIEST), kind)


def _neighbours(connection: sqlite3.Connection, cid: int, row: _Row) -> Iterator[Tie]:
    """The one before and the one behind."""
    did, meta, _ = row
    key = next((name for name in SESSIONS if _is_value(meta.get(name))), None)
    if key is None:
        return
    near: list[int] = []
    for comparison, order in (("<", "DESC"), (">", "ASC")):
        sql = (
            f"SELECT did FROM fields WHERE cid = ? AND key = ? AND value = ? AND did {comparison} ? "
            f"ORDER BY did {order} LIMIT ?"
        )
        near += [other for (other,) in connection.execute(sql, (cid, key, meta[key], did, NEAR))]
    around = [other for other in _rows(connection, near).values() if _follows(meta, other[1])] if near else []
    ordered = sorted([*around, row], key=lambda item: (item[2], item[0]))
    at = ordered.index(row)
    if at:
        yield Tie(did, ordered[at - 1][0], 1.0, f"before it in {key}")
    if at + 1 < len(ordered):
        yield Tie(did, ordered[at + 1][0], 1.0, f"behind it in {key}")


def _follows(meta: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if any(str(other.get(name, "")).lower() in ANSWERING for name in SPEAKERS):
        return False
    return all(meta[name] == other[name] for name in WITHIN if name in meta and name in other)


def _alike(connection: sqlite3.Connection, cid: int, row: _Row, known: Sharing) -> list[Tie]:
    """Documents with the same rare value: a ticket, a page, an author of three notes. Text only: numbers and times
    are the same by chance."""
    did, meta, _ = row
    found: list[Tie] = []
    for key, value in _values(meta):
        others = known.get((key, value))
        if others is None:
            others = known[key, value] = _sharing(connection, cid, key, value)
        if others:
            weight, label = SHARED / (len(others) - 1), f"{key} {value}"
            found += [Tie(did, other, weight, label) for other in others]
    return found


def _values(meta: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The first few values that two documents could have in common; most metadata has no levels."""
    found: list[tuple[str, str]] = []
    for name, own in meta.items():
        if name in _NO_VALUES:
            continue
        for key, value in ((name, own),) if isinstance(own, str) else flatten({name: own}):
            if isinstance(value, str) and _names_something(value):
                found.append((key, value))
                if len(found) == LOOKED_AT:
                    return found
    return found


def _sharing(connection: sqlite3.Connection, cid: int, key: str, value: str) -> tuple[int, ...]:
    sql = "SELECT did FROM fields WHERE cid = ? AND key = ? AND value = ? LIMIT ?"
    others = tuple([other for (other,) in connection.execute(sql, (cid, key, value, RARE + 1))])
    return others if 1 < len(others) <= RARE else ()


def _is_value(value: Any) -> bool:
    return isinstance(value, str | int) and value != ""


def _names_something(value: str) -> bool:
    return 0 < len(value) <= LONGEST and not value[:4].isdigit()
