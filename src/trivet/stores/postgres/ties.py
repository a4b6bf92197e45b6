"""Which documents belong together on a server, whatever they say?

What ``stores/sqlite/ties.py`` reads of a file, in as few questions as a server should be asked: all links at once, all
sessions at once, all shared values at once. The meaning of each is written there.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trivet.filters import flatten
from trivet.graph.walk import Tie
from trivet.stores.postgres.filter_sql import number_of
from trivet.stores.postgres.links import All, named, numbered
from trivet.stores.postgres.parts import Parts
from trivet.stores.postgres.schema import PREFIX
from trivet.stores.sqlite.ties import (
    ANSWERING,
    HEAVIEST,
    LONGEST,
    LOOKED_AT,
    MOST_LINKS,
    NEAR,
    RARE,
    SESSIONS,
    SHARED,
    SPEAKERS,
    WITHIN,
)
from trivet.types import SUPERSEDES

_NO_VALUES = frozenset((*SESSIONS, *WITHIN, "role", "speaker", "sender", "triples"))
_Row = tuple[int, Mapping[str, Any], float]  # document, metadata, created
_Asked = tuple[int, str, Any]  # document, key, value


def ties(every: All, parts: Parts, dids: Sequence[int], linked: bool) -> list[Tie]:
    """What these documents are tied to; ``linked``: is there any link in the collection?"""
    rows = _rows(every, parts, dids)
    found = list(_links(every, parts, dids)) if linked else []
    return [*found, *_neighbours(every, parts, rows), *_alike(every, parts, rows)]


def any_links(every: All, cid: int) -> bool:
    return bool(every("SELECT 1 FROM links WHERE cid = %s AND type <> %s LIMIT 1", (cid, SUPERSEDES)))


def _rows(every: All, parts: Parts, dids: Sequence[int]) -> dict[int, _Row]:
    sql = "SELECT did, meta, created FROM documents WHERE cid = %s AND did = ANY(%s)"
    return {
        did: (did, json.loads(meta), created)
        for part, own in parts.by_number(dids).items()
        for did, meta, created in every(sql, (part.cid, own))
    }


def _links(every: All, parts: Parts, dids: Sequence[int]) -> Iterator[Tie]:
    ids = named(every, parts, dids)
    own = {identifier: did for did, identifier in ids.items()}
    for here, there in (("source", "target"), ("target", "source")):
        sql = (
            "SELECT a.id, x.other, x.type, x.weight FROM unnest(%s::text[]) AS a(id) JOIN LATERAL ("
            f"SELECT l.{there} AS other, l.type, l.weight FROM links l "
            f"WHERE l.cid = %s AND l.{here} = a.id AND l.type <> %s LIMIT %s) x ON true"
        )
        rows = every(sql, (list(own), parts.root, SUPERSEDES, MOST_LINKS)) if own else []
        known = numbered(every, parts, [other for _, other, _, _ in rows])
        for identifier, other, kind, weight in rows:
            if other in known:
                yield Tie(own[identifier], known[other][0], min(weight, HEAVIEST), kind)


def _neighbours(every: All, parts: Parts, rows: Mapping[int, _Row]) -> Iterator[Tie]:
    """The one before and the one behind, in its session."""
    sessions: dict[int, str] = {}
    for did, (_, meta, _) in rows.items():
        key = next((name for name in SESSIONS if _is_value(meta.get(name))), None)
        if key is not None:
            sessions[did] = key
    asked: list[_Asked] = [(did, key, rows[did][1][key]) for did, key in sessions.items()]
    near: dict[int, list[int]] = {did: [] for did in sessions}
    for comparison, order in (("<", "DESC"), (">", "ASC")):
        behind = f"AND f.did {comparison} a.did ORDER BY f.did {order} LIMIT {NEAR}"
        for did, other in _having(every, parts, asked, behind):
            near[did].append(other)
    known = _rows(every, parts, list({other for others in near.values() for other in others})) if asked else {}
    for did, key in sessions.items():
        row = rows[did]
        around = [known[other] for other in near[did] if other in known and _follows(row[1], known[other][1])]
        ordered = sorted([*around, row], key=lambda item: (item[2], item[0]))
        at = next(place for place, item in enumerate(ordered) if item[0] == did)
        if at:
            yield Tie(did, ordered[at - 1][0], 1.0, f"before it in {key}")
        if at + 1 < len(ordered):
            yield Tie(did, ordered[at + 1][0], 1.0, f"behind it in {key}")


def _alike(every: All, parts: Parts, rows: Mapping[int, _Row]) -> Iterator[Tie]:
    """Documents with the same rare value."""
    asked: list[_Asked] = []
    for did, (_, meta, _) in rows.items():
        own = {key: value for key, value in meta.items() if key not in _NO_VALUES}
        values = [(key, value) for key, value in flatten(own) if isinstance(value, str) and _names_something(value)]
        asked += [(did, key, value) for key, value in values[:LOOKED_AT]]
    shared: dict[tuple[int, str, str], list[int]] = {}
    for at, other in _having(
        every, parts, [(at, key, value) for at, (_, key, value) in enumerate(asked)], f"LIMIT {RARE + 1}"
    ):
        did, key, value = asked[at]
        shared.setdefault((did, key, value), []).append(other)
    for (did, key, value), others in shared.items():
        if 1 < len(others) <= RARE:
            for other in others:
                yield Tie(did, other, SHARED / (len(others) - 1), f"{key} {value}")


def _having(every: All, parts: Parts, asked: Sequence[_Asked], behind: str) -> list[tuple[int, int]]:
    """(number asked with, document that has the value under the key)."""
    found: list[tuple[int, int]] = []
    texts = [item for item in asked if isinstance(item[2], str)]
    numbers = [(did, key, number_of(value)) for did, key, value in asked if not isinstance(value, str)]
    same_text = f'"left"(f.said, {PREFIX}) = "left"(a.value, {PREFIX}) AND f.said = a.value'
    kinds = ((texts, "text", same_text), (numbers, "numeric", "f.number = a.value"))
    for part, (items, kind, same) in itertools.product(parts.every, kinds):
        if items:
            rows = every(
                f"SELECT a.did, x.did FROM unnest(%s::bigint[], %s::text[], %s::{kind}[]) AS a(did, key, value) "
                f"JOIN LATERAL (SELECT f.did FROM fields f WHERE f.cid = %s AND f.key = a.key AND {same} {behind}) x "
                "ON true",
                (*(list(column) for column in zip(*items, strict=True)), part.cid),
            )
            found += [(did, other) for did, other in rows]
    return found


def _follows(meta: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if any(str(other.get(name, "")).lower() in ANSWERING for name in SPEAKERS):
        return False
    return all(meta[name] == other[name] for name in WITHIN if name in meta and name in other)


def _is_value(value: Any) -> bool:
    return isinstance(value, str | int) and value != ""


def _names_something(value: str) -> bool:
    return 0 < len(value) <= LONGEST and not value[:4].isdigit()
