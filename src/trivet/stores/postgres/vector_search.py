"""The nearest passages of one embedding model, by pgvector.

A small collection, or the few documents that a narrow filter leaves, is compared exactly. Otherwise an HNSW index, one
for each model, proposes candidates and the exact cosine ranks them. With a filter that allows many documents
the index is read further (``hnsw.iterative_scan``; in relaxed order, so the rows are sorted again) and its rows are
checked against the filter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trivet.errors import ModelReplacedError
from trivet.stores.contract import Found, Model
from trivet.stores.postgres.database import CANDIDATES, Connection, Database
from trivet.stores.postgres.scope import Scope
from trivet.stores.postgres.tables import PARTS, Tables, index_name
from trivet.stores.ranking import best_passages, rows_for, rows_of_part

if TYPE_CHECKING:
    from trivet.types import Vector

INDEX_FROM = 8_192  # vectors; fewer are compared one by one in a few milliseconds
EXACT_UP_TO = 8_000  # documents that a scope allows, for the same reason
MAX_READ = 20_000  # rows read from the index before the exact comparison is cheaper
MAX_VECTOR, MAX_HALFVEC = 2_000, 4_000  # dimensions that an index of pgvector takes
OVERSAMPLING = 2  # candidates for each result where the index has half the precision
#: Rows that the index considers for each that is asked for; and in a part of a distributed collection beside its share
#: of all: the fewer a graph considers, the more of the nearest it misses.
BREADTH, MORE_IN_A_PART = 1.25, 25
MOST_CANDIDATES = 1_000  # that pgvector considers at a time


def drop_index(database: Database, tables: Tables, mid: int) -> None:
    """Drop the HNSW index of a model."""
    name = database.address.qualified(index_name(tables, mid))
    database.outside(lambda connection: connection.execute(f"DROP INDEX IF EXISTS {name}"))


@dataclass(frozen=True, slots=True)
class VectorSearch:
    """The vectors of one model of a collection."""

    database: Database
    tables: Tables
    model: Model

    @property
    def index_type(self) -> str | None:
        """What the index holds; None where the vectors have more dimensions than an index takes."""
        if self.model.dim > MAX_HALFVEC:
            return None
        return "halfvec" if self.model.dim > MAX_VECTOR else self.database.address.index

    def nearest(self, vector: Vector, depth: int, scope: Scope | None, documents: int) -> list[Found]:
        """Return the nearest passages, one for each document; ``documents``: how many the collection has."""
        literal = f"[{(',%.9g' * len(vector) % tuple(vector.tolist()))[1:]}]"  # nine digits are all of a float32
        few = not self._is_large or (scope is not None and scope.count <= EXACT_UP_TO)
        found = self._exact(literal, depth, scope) if few else self._by_index(literal, depth, scope, documents)
        # checked after the vectors were read: a model that is still there had all of its vectors then
        if (not found or self.tables.distributed) and not self.database.all(
            f"SELECT 1 FROM models WHERE {self.tables.of()} AND mid = {self.model.mid}"
        ):
            raise ModelReplacedError("the collection was re-embedded with another model meanwhile")
        return found

    @property
    def _is_large(self) -> bool:
        return self.model.vectors >= INDEX_FROM and self.index_type is not None

    @property
    def _source(self) -> str:
        return f"FROM {self.tables.vectors} v {self._where}"

    @property
    def _where(self) -> str:
        return f"WHERE {self.tables.of('v')} AND v.mid = {self.model.mid}"

    def _exact(self, literal: str, depth: int, scope: Scope | None) -> list[Found]:
        few = scope is not None and scope.is_few
        within, values = scope.within("v.did", few) if scope is not None else ("", [])
        source = f"FROM {self.tables.vectors} v{self.tables.and_parts if few else ''} {self._where}"
        sql = f"SELECT v.data <=> %s::vector AS far, v.pid, v.did {source}{within} ORDER BY far, did, pid LIMIT %s"
        limit = depth + depth // 2 + 16
        while True:
            rows = self.database.planned(sql, (literal, *values, limit))
            found = _best(rows, depth)
            if len(found) >= depth or len(rows) < limit:
                return found
            limit *= 4  # the passages of a few long documents fill the list

    def _by_index(self, literal: str, depth: int, scope: Scope | None, documents: int) -> list[Found]:
        limit = rows_for(depth, documents, self.model.vectors, None if scope is None else scope.count)
        while limit <= MAX_READ or scope is None:
            candidates = limit * OVERSAMPLING if self.index_type == "halfvec" else limit
            rows = self._candidates(literal, candidates)
            if scope is not None:
                scope.expect(did for _, _, did in rows)
            found = _best([row for row in rows if scope is None or row[2] in scope], depth)
            if len(found) >= depth or (scope is None and len(rows) < candidates):
                return found
            limit *= 4
            if scope is not None and len(rows) < candidates:
                break  # the index was read as far as pgvector does
        return self._exact(literal, depth, scope)  # no document may be missed

    def _candidates(self, literal: str, most: int) -> list[tuple[Any, ...]]:
        """Return the nearest passages that the index proposes; fewer than ``most`` where it has no more."""
        kind, dim = self.index_type, self.model.dim
        considered = max(CANDIDATES, math.ceil(BREADTH * most))
        order = f"ORDER BY (v.data::{kind}({dim})) <=> %s::{kind}({dim}) LIMIT"
        if not self.tables.distributed:
            source = f"{self._source} AND {self._settings(considered, once=True)}"
            sql = f"SELECT v.data <=> %s::vector, v.pid, v.did {source} {order} {most}"
            return self.database.prepared(sql, (literal, literal))
        # an array: a cluster sends no LATERAL with a LIMIT to its workers; and a LIMIT for all is also that of each
        row = f"SELECT concat_ws(' ', v.data <=> %s::vector, v.pid, v.did) {self._source} AND v.part = h.part {order}"
        parts = len(self.tables.parts)
        each = rows_of_part(most, parts)
        while True:
            settings = self._settings(max(each, math.ceil(considered / parts) + MORE_IN_A_PART))
            sql = f"SELECT ARRAY({row} {each}) FROM {PARTS} h WHERE {self.tables.of('h')} AND {settings}"
            told = self.database.prepared(sql, (literal, literal))
            found = [(len(rows) == each, _parsed(rows)) for (rows,) in told]
            nearest = sorted(row for _, rows in found for row in rows)[:most]
            # a part that is full and wholly among the nearest may have more of them
            if each == most or not any(full and (not rows or max(rows) <= nearest[-1]) for full, rows in found):
                return nearest
            each = min(most, 4 * each)

    def _settings(self, candidates: int, once: bool = False) -> str:
        return self.database.settings_of_index(min(candidates, MOST_CANDIDATES), once)

    # --- the index ----------------------------------------------------------------------------------------------------

    def wants_index(self) -> bool:
        """Tell whether the collection is large enough for an index, and can be written."""
        return self._is_large and not self.database.read_only

    def has_index(self) -> bool:
        """Tell whether there is a valid index."""
        sql = "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid"
        return bool(self.database.all(sql, (self._index,)))

    def build_index(self) -> None:
        """Build the index while others read and write; do nothing where another process builds it."""
        with self.database.locked(index_name(self.tables, self.model.mid)) as granted:
            if granted and not self.has_index():
                self.database.outside(self._build)

    @property
    def _index(self) -> str:
        return self.database.address.qualified(index_name(self.tables, self.model.mid))

    def _build(self, connection: Connection) -> None:
        home, kind = self.database.server.vector_schema, self.index_type
        connection.execute(f"DROP INDEX IF EXISTS {self._index}")  # the rest of a killed process is not valid
        connection.execute(
            f"CREATE INDEX CONCURRENTLY {index_name(self.tables, self.model.mid)} "
            f"ON {self.database.address.qualified(self.tables.vectors)} USING hnsw "
            f"((data::{home}.{kind}({self.model.dim})) {home}.{kind}_cosine_ops) "
            f"WHERE {self.tables.of()} AND mid = {self.model.mid}"
        )


def _parsed(rows: Sequence[str]) -> list[tuple[float, int, int]]:
    """Return (distance, passage, document) of each row but those of vectors that are all zeros."""
    found = [(float(far), int(pid), int(did)) for far, pid, did in map(str.split, rows)]
    return [row for row in found if row[0] == row[0]]


def _best(rows: list[tuple[Any, ...]], depth: int) -> list[Found]:
    """Return the best of (distance, passage, document); NaN: the vector is all zeros."""
    return best_passages([(1.0 - far, pid, did) for far, pid, did in rows if far == far], depth)
