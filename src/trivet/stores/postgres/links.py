"""Which documents are connected, which stand in another's place, and which resolve it?

Chains are followed step by step, one question to the server a step: they are short, and a recursive query is refused by
a cluster. Only documents that are here take part: a link may name one that is not, yet or any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

from trivet.stores.postgres.database import Connection
from trivet.types import RESOLVED_BY, SUPERSEDES, Link, Succession

All = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]


def mark(*parts: str) -> bytes:
    return blake2b("\0".join(parts).encode(), digest_size=16).digest()


def add(connection: Connection, cid: int, links: Sequence[Link]) -> None:
    """The later of two with the same ends and type counts."""
    latest = {mark(link.source, link.target, link.type): link for link in links}
    if latest:
        connection.cursor().executemany(
            "INSERT INTO links (cid, mark, source, target, type, weight) VALUES (%s, %s, %s, %s, %s, %s) "
            "ON CONFLICT (cid, mark) DO UPDATE SET weight = excluded.weight",
            [(cid, key, link.source, link.target, link.type, link.weight) for key, link in latest.items()],
        )


def outgoing(connection: Connection, cid: int, identifier: str) -> set[Link]:
    sql = "SELECT source, target, type, weight FROM links WHERE cid = %s AND source = %s"
    return {Link(*row) for row in connection.execute(sql, (cid, identifier))}


def remove_from(connection: Connection, cid: int, identifier: str) -> None:
    connection.execute("DELETE FROM links WHERE cid = %s AND source = %s", (cid, identifier))


def remove_of(connection: Connection, cid: int, ids: list[str]) -> None:
    sql = "DELETE FROM links WHERE cid = %s AND (source = ANY(%s) OR target = ANY(%s))"
    connection.execute(sql, (cid, ids, ids))


def of(every: All, cid: int, identifier: str | None) -> list[Link]:
    """Links from or to a document; every link of the collection without one."""
    sql, values = "SELECT source, target, type, weight FROM links WHERE cid = %s", [cid]
    if identifier is not None:
        sql, values = f"{sql} AND (source = %s OR target = %s)", [cid, identifier, identifier]  # type: ignore[list-item]
    return [Link(*row) for row in every(f"{sql} ORDER BY source, target, type", values)]


def any_that_count(every: All, cid: int) -> bool:
    """Is there a link at all that changes recall?"""
    sql = "SELECT 1 FROM links WHERE cid = %s AND type = ANY(%s) LIMIT 1"
    return bool(every(sql, (cid, [SUPERSEDES, RESOLVED_BY])))


def successors(every: All, cid: int, dids: Sequence[int]) -> list[Succession]:
    """Who directly supersedes whom, among these documents and everything their chains lead to."""
    sql = (
        "SELECT o.did, o.id, n.did, n.id, n.created FROM documents o "
        "JOIN links l ON l.cid = o.cid AND l.target = o.id AND l.type = %s "
        "JOIN documents n ON n.cid = l.cid AND n.id = l.source WHERE o.cid = %s AND o.did = ANY(%s)"
    )
    found: list[Succession] = []
    seen: set[int] = set()
    waiting = set(dids)
    while waiting:
        rows = [Succession(*row) for row in every(sql, (SUPERSEDES, cid, list(waiting)))]
        found += rows
        seen |= waiting
        waiting = {int(row.new) for row in rows} - seen
    return found


def resolutions(every: All, cid: int, dids: Sequence[int]) -> dict[int, list[tuple[int, str]]]:
    """did → (did, id) of what resolves it, by id."""
    rows = every(
        "SELECT p.did, d.did, d.id FROM documents p JOIN links l ON l.cid = p.cid AND l.source = p.id AND l.type = %s "
        "JOIN documents d ON d.cid = l.cid AND d.id = l.target "
        "WHERE p.cid = %s AND p.did = ANY(%s) AND d.did <> p.did ORDER BY d.id",
        (RESOLVED_BY, cid, list(dids)),
    )
    found: dict[int, list[tuple[int, str]]] = {}
    for problem, did, identifier in rows:
        found.setdefault(problem, []).append((did, identifier))
    return found


def superseded(every: All, cid: int, ids: Sequence[str] | None, limit: int) -> list[tuple[str, str]]:
    """(id, id of what directly supersedes it), of these documents or of all."""
    named = "" if ids is None else " AND l.target = ANY(%s)"
    return [
        (old, new)
        for old, new in every(
            "SELECT l.target, l.source FROM links l JOIN documents o ON o.cid = l.cid AND o.id = l.target "
            "JOIN documents n ON n.cid = l.cid AND n.id = l.source "
            f"WHERE l.cid = %s AND l.type = %s AND l.source <> l.target{named} "
            "ORDER BY n.created DESC, l.target LIMIT %s",
            (cid, SUPERSEDES, *(() if ids is None else (list(ids),)), limit),
        )
    ]
