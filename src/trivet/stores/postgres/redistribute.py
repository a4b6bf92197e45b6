"""Moving a collection between the tables by collection and the tables by document.

The server copies the rows under the collection's lock, and the collection gets a new number. Processes that have it
open find nothing under the old number, and say that it has to be opened again.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trivet.errors import InputError, StoreError
from trivet.stores.postgres.address import Address
from trivet.stores.postgres.database import Connection
from trivet.stores.postgres.schema import DISTRIBUTED, LATER, LATER_BY_PART, Server
from trivet.stores.postgres.tables import MAX_PARTS, PARTS, SLOT, Tables, index_name
from trivet.stores.postgres.transaction import new_version

PLAIN_PARTS = 4  # of a collection on a single server, which may become a cluster
TRIED = 4_096  # values of the column ``part`` among which there is one for each shard
#: The columns that a copy leaves as they are, by table.
COPIED = {
    "documents": "id, title, text, kind, meta, importance, created, updated, accessed, valid_from, valid_to, hash, "
    "accesses, expires",
    "passages": "ordinal, start, stop, hash, length, body, words",
    "vectors": "mid, data",
    "fields": "place, key, said, number",
}
#: What a collection has once, with its columns beside ``cid``. The postings and the log of removals begin again, and so
#: do the tokens of versions: whoever has kept numbers of documents, as Qdrant does, must not take a state for the past.
ONCE = {
    "models": "mid, id, spec, dim, vectors",
    "lexicon": "term, passages",
    "links": "mark, source, target, type, weight",
    "feedback": "mark, seq, query, id, good, at",
    "settings_history": "number, at, who, settings, previous",
}
_HEAD = (
    "settings, mid, version, documents, passages, terms, last_document, last_passage, last_removed, last_model, "
    "last_feedback"
)


def new_number(connection: Connection) -> int:
    """Return the number of a new collection."""
    row = connection.execute(
        "UPDATE numbers SET value = value + 1 WHERE name = 'collection' RETURNING value"
    ).fetchone()
    assert row is not None
    return int(row[0])


def add_parts(connection: Connection, server: Server, cid: int) -> list[int]:
    """Give a new collection its parts; return the values of the column ``part``, each of which is on its own shard."""
    parts = list(range(server.shards or PLAIN_PARTS))
    if server.citus:
        on_shard = f"get_shard_id_for_distribution_column('{PARTS}', v)"
        sql = f"SELECT min(v)::integer FROM generate_series(0, {TRIED - 1}) v GROUP BY {on_shard} ORDER BY 1"
        parts = [int(part) for (part,) in connection.execute(sql)][:MAX_PARTS]
    if server.shards not in (None, len(parts)):
        raise InputError(
            f"store: shards is {server.shards}, but the tables of this store have {len(parts)}, since it was made; "
            "open it without shards, or copy it to another schema with `trivet copy`"
        )
    connection.execute(
        f"INSERT INTO {PARTS} (cid, part) SELECT {cid}, x.part FROM unnest(%s::integer[]) AS x(part)", (parts,)
    )
    return parts


def move(connection: Connection, server: Server, cid: int, config: Mapping[str, Any], by: str) -> Tables:
    """Move a collection to the tables by its ``documents`` or by ``collections``; return where it is now."""
    if connection.execute(f"SELECT 1 FROM heads WHERE cid = {cid} FOR UPDATE").fetchone() is None:
        raise StoreError("redistribute: the collection was dropped or moved meanwhile; repeat the call")
    to = new_number(connection)
    kept = {key: value for key, value in config.items() if key not in ("spread", "parts")}
    if by == "documents":
        kept["parts"] = add_parts(connection, server, to)
    target = Tables(to, tuple(kept.get("parts", ())))
    connection.execute(
        f"INSERT INTO heads (cid, bm25, pruned, {_HEAD}) "
        f"SELECT {to}, false, last_removed, {_HEAD} FROM heads WHERE cid = {cid}"
    )
    for table, columns in ONCE.items():
        connection.execute(
            f"INSERT INTO {table} (cid, {columns}) SELECT {to}, {columns} FROM {table} WHERE cid = {cid}"
        )
    sources = _sources(cid, config)
    for source in sources:
        for table in COPIED:
            connection.execute(source.copying(table, target))
    if "spread" in config:  # each source had a lexicon of its own
        connection.execute(
            f"INSERT INTO lexicon (cid, term, passages) SELECT {to}, l.term, sum(l.passages) FROM lexicon l "
            f"WHERE l.cid = ANY(%s) GROUP BY l.term",
            ([source.tables.root for source in sources],),
        )
    delete(connection, [cid, *(source.tables.root for source in sources)])
    connection.execute("UPDATE collections SET cid = %s, config = %s WHERE cid = %s", (to, json.dumps(kept), cid))
    new_version(connection, to)
    return target


def move_spread(connection: Connection, server: Server, address: Address) -> None:
    """Move the collections that an older trivet made with ``spread``; the indexes of their vectors are made again."""
    rows = connection.execute("SELECT cid, config FROM collections WHERE strpos(config, '\"spread\"') > 0").fetchall()
    for cid, config in rows:
        kept = json.loads(config)
        models = connection.execute(f"SELECT mid FROM models WHERE cid = {int(cid)}").fetchall()
        sources = _sources(cid, kept)
        move(connection, server, cid, kept, "documents")
        for source, (mid,) in itertools.product(sources, models):
            connection.execute(f"DROP INDEX IF EXISTS {address.qualified(index_name(source.tables, mid))}")


def delete(connection: Connection, cids: list[int]) -> None:
    """Delete all rows of a collection but its name."""
    later = ("vectors", "fields", "passages", *DISTRIBUTED, *LATER)
    by_part = sorted(LATER_BY_PART, key=lambda table: table.endswith("documents"))  # the others refer to documents
    for number in sorted(set(cids)):
        for table in (*dict.fromkeys(later), *by_part):
            connection.execute(f"DELETE FROM {table} WHERE cid = {number}")


@dataclass(frozen=True, slots=True)
class _Source:
    """Tables to copy from, and the distance between two numbers of a document there."""

    tables: Tables
    step: int

    def copying(self, table: str, target: Tables) -> str:
        """Return the statement that copies a table; the id of its document gives a row its part."""
        document = "t" if table == "documents" else "d"
        part = slot = ""
        if target.parts:
            place = SLOT.format(id=f"{document}.id", parts=len(target.parts))
            part = f", (ARRAY[{', '.join(map(str, target.parts))}])[1 + {place}]"
            slot = f" * {MAX_PARTS} + {place}"
        numbers = ("did", "pid") if table in ("passages", "vectors") else ("did",)
        columns = ", ".join((*numbers, COPIED[table]))
        values = [f"t.{number} / {self.step}{slot}" for number in numbers]
        values += [f"t.{column}" for column in COPIED[table].split(", ")]
        source, joined = f"{self.tables.name_of(table)} t", self.tables.of("t")
        if table != "documents":
            source = f"{source}, {self.tables.documents} d"
            joined = f"{joined} AND {self.tables.beside('d', 't')} AND d.did = t.did"
        return (
            f"INSERT INTO {target.name_of(table)} ({target.key}, {columns}) "
            f"SELECT {target.root}{part}, {', '.join(values)} FROM {source} WHERE {joined}"
        )


def _sources(cid: int, config: Mapping[str, Any]) -> list[_Source]:
    """Return where the rows of a collection are; with ``spread``, of an older trivet, each shard had its own number."""
    if spread := int(config.get("spread", 0)):
        return [_Source(Tables(cid + 1 + slot), MAX_PARTS) for slot in range(spread)]
    tables = Tables(cid, tuple(config.get("parts", ())))
    return [_Source(tables, tables.step)]
