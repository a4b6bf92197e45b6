"""The rows of links: writing them, and following the chains that change what a search shows.

Links are with their collection and documents may be in its parts, so no statement joins them: the ends are looked up. A
link may name a document that does not exist; it is passed over. Chains are followed step by step: they are short, and a
cluster refuses recursive statements. The number of links that one search reads is bounded; beyond that, which ones are
left out is undefined.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from trivet.graph.supersession import MAX_LINKS, MAX_STEPS, TOO_MANY, walk
from trivet.stores.postgres.database import Select
from trivet.stores.postgres.tables import Tables
from trivet.stores.postgres.transaction import Transaction
from trivet.types import RESOLVED_BY, SUPERSEDES, Link, Resolutions, Succession, Successions


def digest(*parts: str) -> bytes:
    """Return a hash for a primary key: long texts do not fit into an index."""
    return blake2b("\0".join(parts).encode(), digest_size=16).digest()


# --- writing ----------------------------------------------------------------------------------------------------------


def add(transaction: Transaction, links: Sequence[Link]) -> None:
    """Add links; of two with the same ends and type the later one counts."""
    latest = {digest(link.source, link.target, link.type): link for link in links}
    if latest:
        transaction.connection.cursor().executemany(
            "INSERT INTO links (cid, mark, source, target, type, weight) VALUES (%s, %s, %s, %s, %s, %s) "
            "ON CONFLICT (cid, mark) DO UPDATE SET weight = excluded.weight",
            [(transaction.root, key, link.source, link.target, link.type, link.weight) for key, link in latest.items()],
        )


def outgoing(transaction: Transaction, id: str) -> set[Link]:
    """Return the links from a document."""
    sql = "SELECT source, target, type, weight FROM links WHERE cid = %s AND source = %s"
    return {Link(*row) for row in transaction.all(sql, (transaction.root, id))}


def remove(transaction: Transaction, links: Iterable[Link]) -> None:
    """Delete these links."""
    keys = [digest(link.source, link.target, link.type) for link in links]
    transaction.execute("DELETE FROM links WHERE cid = %s AND mark = ANY(%s)", (transaction.root, keys))


def remove_of(transaction: Transaction, ids: list[str]) -> None:
    """Delete the links from and to these documents."""
    sql = "DELETE FROM links WHERE cid = %s AND (source = ANY(%s) OR target = ANY(%s))"
    transaction.execute(sql, (transaction.root, ids, ids))


# --- reading ----------------------------------------------------------------------------------------------------------


def read(select: Select, root: int, id: str | None) -> list[Link]:
    """Return the links from and to a document, or all."""
    sql, values = "SELECT source, target, type, weight FROM links WHERE cid = %s", [root]
    if id is not None:
        sql, values = f"{sql} AND (source = %s OR target = %s)", [root, id, id]  # type: ignore[list-item]
    return [Link(*row) for row in select(f"{sql} ORDER BY source, target, type", values)]


def successors(select: Select, tables: Tables, dids: Sequence[int]) -> Successions:
    """Follow the chains of superseding documents that begin at these."""
    names = ids_of(select, tables, dids)

    def step(olds: Sequence[int], most: int) -> tuple[list[Succession], int]:
        ids = {names[did]: did for did in olds if did in names}
        pairs = _pairs(select, tables.root, ("target", "source"), ids, SUPERSEDES, most)
        news = numbers_of(select, tables, [new for _, new in pairs])
        names.update((did, id) for id, (did, _) in news.items())
        rows = [Succession(ids[old], old, news[new][0], new, news[new][1]) for old, new in pairs if new in news]
        return rows, len(pairs)

    return walk(dids, step, MAX_STEPS)


def resolutions(select: Select, tables: Tables, dids: Sequence[int]) -> Resolutions:
    """Find the documents that resolve these, in the order of their ids."""
    problems = ids_of(select, tables, dids)
    pairs = _pairs(select, tables.root, ("source", "target"), problems.values(), RESOLVED_BY, MAX_LINKS + 1)
    note = TOO_MANY.format(kind=RESOLVED_BY) if len(pairs) > MAX_LINKS else ""
    pairs = pairs[:MAX_LINKS]
    known = numbers_of(select, tables, [target for _, target in pairs])
    numbers = {id: did for did, id in problems.items()}
    found: dict[int, list[tuple[int, str]]] = {}
    for problem, id in sorted(pairs, key=lambda pair: pair[1]):
        if id in known and known[id][0] != numbers[problem]:
            found.setdefault(numbers[problem], []).append((known[id][0], id))
    return Resolutions(found, note)


def superseded(select: Select, tables: Tables, ids: Sequence[str] | None, limit: int | None) -> list[tuple[str, str]]:
    """Return (id, id of the document that directly supersedes it), of these ids or of all; the newest first."""
    pairs = [pair for pair in _pairs(select, tables.root, ("target", "source"), ids, SUPERSEDES) if pair[0] != pair[1]]
    known = numbers_of(select, tables, [id for pair in pairs for id in pair])
    there = [(old, new) for old, new in pairs if old in known and new in known]
    return sorted(there, key=lambda pair: (-known[pair[1]][1], pair[0]))[:limit]


def _pairs(
    select: Select, root: int, ends: tuple[str, str], ids: Iterable[str] | None, kind: str, most: int | None = None
) -> list[tuple[str, str]]:
    """Return both ends of up to ``most`` links of a type, of those whose first end is among the ids."""
    here, there = ends
    sql, values = f"SELECT {here}, {there} FROM links WHERE cid = %s AND type = %s", [root, kind]
    if ids is not None:
        sql, values = f"{sql} AND {here} = ANY(%s)", [root, kind, list(ids)]
    if most is not None:
        sql, values = f"{sql} LIMIT %s", [*values, most]
    return [(one, other) for one, other in select(sql, values)]


def ids_of(select: Select, tables: Tables, dids: Iterable[int]) -> dict[int, str]:
    """Map the numbers of documents that exist to their ids."""
    return dict(tables.select(select, f"SELECT did, id FROM {tables.documents}", "did", dids))


def numbers_of(select: Select, tables: Tables, ids: Iterable[str]) -> dict[str, tuple[int, float]]:
    """Map the ids of documents that exist to (number, time of creation)."""
    rows = tables.select_ids(select, f"SELECT id, did, created FROM {tables.documents}", "id", ids)
    return {id: (did, created) for id, did, created in rows}
