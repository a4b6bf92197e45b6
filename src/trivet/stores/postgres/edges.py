"""Edges between documents, read from a PostgreSQL server by the rules of ``trivet.graph.edges``.

All links, all neighbours in sessions and all shared values of a set of documents are read in one statement each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trivet.graph.edges import HEAVIEST, MOST_LINKS, NEAR, RARE, SHARED_VALUE, Edge, follows, session_key, shared_values
from trivet.stores.postgres.database import Select
from trivet.stores.postgres.filter_sql import number_of
from trivet.stores.postgres.link_rows import ids_of, numbers_of
from trivet.stores.postgres.rows import Rows
from trivet.stores.postgres.schema import PREFIX
from trivet.stores.postgres.tables import PARTS
from trivet.types import SUPERSEDES

_Row = tuple[int, Mapping[str, Any], float]  # document, metadata, created
Wanted = tuple[int, str, Any]  # a number that identifies the request, key, value


def edges(rows: Rows, dids: Sequence[int], linked: bool, sessions: bool = True) -> list[Edge]:
    """Return the edges of these documents; ``linked``: the collection has links."""
    documents = _read(rows, dids)
    found = list(_links(rows, dids)) if linked else []
    found += _session_neighbours(rows, documents) if sessions else ()
    return [*found, *_sharing_values(rows, documents)]


def any_links(select: Select, root: int) -> bool:
    """Tell whether the collection has a link that is an edge."""
    return bool(select("SELECT 1 FROM links WHERE cid = %s AND type <> %s LIMIT 1", (root, SUPERSEDES)))


def _read(rows: Rows, dids: Sequence[int]) -> dict[int, _Row]:
    found = rows.by_number(f"SELECT did, meta, created FROM {rows.tables.documents}", "did", dids)
    return {did: (did, json.loads(meta), created) for did, meta, created in found}


def _links(rows: Rows, dids: Sequence[int]) -> Iterator[Edge]:
    numbers = {id: did for did, id in ids_of(rows.all, rows.tables, dids).items()}
    for here, there in (("source", "target"), ("target", "source")):
        sql = (
            "SELECT a.id, x.other, x.type, x.weight FROM unnest(%s::text[]) AS a(id) JOIN LATERAL ("
            f"SELECT l.{there} AS other, l.type, l.weight FROM links l "
            f"WHERE l.cid = %s AND l.{here} = a.id AND l.type <> %s LIMIT %s) x ON true"
        )
        found = rows.all(sql, (list(numbers), rows.root, SUPERSEDES, MOST_LINKS)) if numbers else []
        known = numbers_of(rows.all, rows.tables, [other for _, other, _, _ in found])
        for id, other, kind, weight in found:
            if other in known:
                yield Edge(numbers[id], known[other][0], min(weight, HEAVIEST), kind)


def _session_neighbours(rows: Rows, documents: Mapping[int, _Row]) -> Iterator[Edge]:
    """Yield the document before and the one after each document in its session."""
    sessions = {did: key for did, (_, meta, _) in documents.items() if (key := session_key(meta)) is not None}
    wanted: list[Wanted] = [(did, key, documents[did][1][key]) for did, key in sessions.items()]
    near: dict[int, list[int]] = {did: [] for did in sessions}
    for comparison, order in (("<", "DESC"), (">", "ASC")):
        nearest = f"AND f.did {comparison} a.did ORDER BY f.did {order} LIMIT {NEAR}"
        for did, other in having(rows, wanted, nearest):
            near[did].append(other)
    known = _read(rows, list({other for others in near.values() for other in others})) if wanted else {}
    for did, key in sessions.items():
        document = documents[did]
        around = [known[other] for other in near[did] if other in known and follows(document[1], known[other][1])]
        ordered = sorted([*around, document], key=lambda item: (item[2], item[0]))
        at = next(place for place, item in enumerate(ordered) if item[0] == did)
        if at:
            yield Edge(did, ordered[at - 1][0], 1.0, f"before it in {key}")
        if at + 1 < len(ordered):
            yield Edge(did, ordered[at + 1][0], 1.0, f"after it in {key}")


def _sharing_values(rows: Rows, documents: Mapping[int, _Row]) -> Iterator[Edge]:
    """Yield the documents that have the same rare metadata value."""
    values = [(did, key, value) for did, (_, meta, _) in documents.items() for key, value in shared_values(meta)]
    wanted: list[Wanted] = [(at, key, value) for at, (_, key, value) in enumerate(values)]
    sharing: dict[tuple[int, str, str], list[int]] = {}
    for at, other in having(rows, wanted, f"LIMIT {RARE + 1}"):
        sharing.setdefault(values[at], []).append(other)
    for (did, key, value), others in sharing.items():
        if 1 < len(others) <= RARE:
            for other in others:
                yield Edge(did, other, SHARED_VALUE / (len(others) - 1), f"{key} {value}")


def having(rows: Rows, wanted: Sequence[Wanted], condition: str) -> list[tuple[int, int]]:
    """Return (number of the request, document that has the value under the key).

    ``condition`` ends the look-up of one request; where the collection is distributed, each part answers it.
    """
    tables = rows.tables
    found: list[tuple[int, int]] = []
    texts = [item for item in wanted if isinstance(item[2], str)]
    numbers = [(at, key, number_of(value)) for at, key, value in wanted if not isinstance(value, str)]
    same_text = f'"left"(f.said, {PREFIX}) = "left"(a.value, {PREFIX}) AND f.said = a.value'
    for items, kind, same in ((texts, "text", same_text), (numbers, "numeric", "f.number = a.value")):
        if items:
            asked = f"unnest(%s::bigint[], %s::text[], %s::{kind}[]) AS a(did, key, value)"
            columns = [list(column) for column in zip(*items, strict=True)]
            look_up = (
                f"SELECT f.did FROM {tables.fields} f WHERE {tables.beside('f', 'h')} AND f.key = a.key AND {same}"
            )
            if tables.distributed:  # a cluster sends no LATERAL with a LIMIT to its workers, but this
                source = f"{PARTS} h CROSS JOIN {asked} WHERE {tables.of('h')}"
                lists = rows.all(f"SELECT a.did, ARRAY({look_up} {condition}) FROM {source}", columns)
                found += [(at, other) for at, others in lists for other in others]
            else:
                sql = f"SELECT a.did, x.did FROM {asked} JOIN LATERAL ({look_up} {condition}) x ON true"
                found += rows.all(sql, columns)
    return found
