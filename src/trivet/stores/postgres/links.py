"""Which documents are connected, which stand in another's place, and which resolve it?

Chains are followed step by step: they are short, and a recursive query is refused by a cluster. How many links one
search reads is bounded; which of more than that are left out is not settled. Links are kept with the
collection, documents with its parts, so no statement joins them: the ends are looked up. Only documents that are here
take part: a link may name one that is not, yet or any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any

from trivet.memory.succession import MAX_LINKS, MAX_STEPS, TOO_MANY, walk
from trivet.stores.postgres.database import Connection
from trivet.stores.postgres.parts import Parts
from trivet.types import RESOLVED_BY, SUPERSEDES, Link, Resolutions, Succession, Successions

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


def remove(connection: Connection, cid: int, links: Iterable[Link]) -> None:
    marks = [mark(link.source, link.target, link.type) for link in links]
    connection.execute("DELETE FROM links WHERE cid = %s AND mark = ANY(%s)", (cid, marks))


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


def asking(connection: Connection) -> All:
    """The same questions, within a transaction."""
    return lambda sql, values: connection.execute(sql, values).fetchall()


def successors(every: All, parts: Parts, dids: Sequence[int]) -> Successions:
    """Who directly supersedes whom, among these documents and everything their chains lead to."""
    names = named(every, parts, dids)

    def step(olds: Sequence[int], most: int) -> tuple[list[Succession], int]:
        ids = {names[did]: did for did in olds if did in names}
        pairs = _pairs(every, parts.root, ("target", "source"), ids, SUPERSEDES, most)
        news = numbered(every, parts, [new for _, new in pairs])
        names.update((did, identifier) for identifier, (did, _) in news.items())
        rows = [Succession(ids[old], old, news[new][0], new, news[new][1]) for old, new in pairs if new in news]
        return rows, len(pairs)

    return walk(dids, step, MAX_STEPS)


def resolutions(every: All, parts: Parts, dids: Sequence[int]) -> Resolutions:
    """did → (did, id) of what resolves it, by id."""
    problems = named(every, parts, dids)
    read = _pairs(every, parts.root, ("source", "target"), problems.values(), RESOLVED_BY, MAX_LINKS + 1)
    pairs = read[:MAX_LINKS]
    known = numbered(every, parts, [target for _, target in pairs])
    ids = {identifier: did for did, identifier in problems.items()}
    found: dict[int, list[tuple[int, str]]] = {}
    for problem, identifier in sorted(pairs, key=lambda pair: pair[1]):
        if identifier in known and known[identifier][0] != ids[problem]:
            found.setdefault(ids[problem], []).append((known[identifier][0], identifier))
    return Resolutions(found, TOO_MANY.format(kind=RESOLVED_BY) if len(read) > MAX_LINKS else "")


def superseded(every: All, parts: Parts, ids: Sequence[str] | None, limit: int | None) -> list[tuple[str, str]]:
    """(id, id of what directly supersedes it), of these documents or of all; the newest first."""
    pairs = [pair for pair in _pairs(every, parts.root, ("target", "source"), ids, SUPERSEDES) if pair[0] != pair[1]]
    known = numbered(every, parts, [identifier for pair in pairs for identifier in pair])
    there = [(old, new) for old, new in pairs if old in known and new in known]
    return sorted(there, key=lambda pair: (-known[pair[1]][1], pair[0]))[:limit]


def _pairs(
    every: All, root: int, ends: tuple[str, str], ids: Iterable[str] | None, kind: str, most: int | None = None
) -> list[tuple[str, str]]:
    """Both ends of the links of a kind, of those whose first one is among the ids; ``most`` of them at most."""
    here, there = ends
    sql, values = f"SELECT {here}, {there} FROM links WHERE cid = %s AND type = %s", [root, kind]
    if ids is not None:
        sql, values = f"{sql} AND {here} = ANY(%s)", [root, kind, list(ids)]
    if most is not None:
        sql, values = f"{sql} LIMIT %s", [*values, most]
    return [(one, other) for one, other in every(sql, values)]


def named(every: All, parts: Parts, dids: Iterable[int]) -> dict[int, str]:
    """did → id, of those that are here."""
    sql = "SELECT did, id FROM documents WHERE cid = %s AND did = ANY(%s)"
    return {
        did: identifier
        for part, own in parts.by_number(dids).items()
        for did, identifier in every(sql, (part.cid, own))
    }


def numbered(every: All, parts: Parts, ids: Iterable[str]) -> dict[str, tuple[int, float]]:
    """id → (did, when it was created), of those that are here."""
    sql = "SELECT id, did, created FROM documents WHERE cid = %s AND id = ANY(%s)"
    return {
        identifier: (did, created)
        for part, own in parts.by_id(dict.fromkeys(ids)).items()
        for identifier, did, created in every(sql, (part.cid, own))
    }
