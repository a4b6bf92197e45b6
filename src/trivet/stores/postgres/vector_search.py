"""The nearest passages of one embedding model, by pgvector.

A small collection, or the few documents that a narrow filter leaves, is compared exactly. Otherwise an HNSW index, one
for each model and shard, proposes candidates and the exact cosine ranks them. With a filter that allows many documents
the index is read further (``hnsw.iterative_scan``; in relaxed order, so the rows are sorted again) and its rows are
checked against the filter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trivet.errors import ModelReplacedError
from trivet.stores.contract import Found, Model
from trivet.stores.postgres.database import Connection, Database
from trivet.stores.postgres.scope import Scope
from trivet.stores.postgres.shards import Shard, Shards
from trivet.stores.ranking import best_passages

if TYPE_CHECKING:
    from trivet.types import Vector

INDEX_FROM = 8_192  # vectors; fewer are compared one by one in a few milliseconds
EXACT_UP_TO = 8_000  # documents that a scope allows, for the same reason
MAX_READ = 20_000  # rows read from the index before the exact comparison is cheaper
MAX_VECTOR, MAX_HALFVEC = 2_000, 4_000  # dimensions that an index of pgvector takes
OVERSAMPLING = 2  # candidates for each result where the index has half the precision


def index_name(shard: Shard, mid: int) -> str:
    """Return the name of the HNSW index of a model."""
    return f"meaning_{shard.cid}_{mid}"


def drop_indexes(database: Database, shards: Shards, mid: int) -> None:
    """Drop the HNSW indexes of a model."""

    def drop(connection: Connection) -> None:
        for shard in shards.all:
            connection.execute(f"DROP INDEX IF EXISTS {database.address.qualified(index_name(shard, mid))}")

    database.outside(drop)


@dataclass(frozen=True, slots=True)
class VectorSearch:
    """The vectors of one model of a collection."""

    database: Database
    shards: Shards
    model: Model

    @property
    def index_type(self) -> str | None:
        """What the index holds; None where the vectors have more dimensions than an index takes."""
        if self.model.dim > MAX_HALFVEC:
            return None
        return "halfvec" if self.model.dim > MAX_VECTOR else self.database.address.index

    def nearest(self, vector: Vector, depth: int, scope: Scope | None) -> list[Found]:
        """Return the nearest passages, one for each document."""
        literal = f"[{','.join(map(repr, vector.tolist()))}]"
        few = not self._is_large or (scope is not None and scope.count <= EXACT_UP_TO)
        search = self._exact if few else self._by_index
        rows = self.database.together(lambda shard: search(shard, literal, depth, scope), self.shards.all)
        found = best_passages([row for own in rows for row in own], depth)
        # checked after the vectors were read: a model that is still there had all of its vectors then
        if (not found or self.shards.spread) and not self.database.all(
            "SELECT 1 FROM models WHERE cid = %s AND mid = %s", (self.shards.root, self.model.mid)
        ):
            raise ModelReplacedError("the collection was re-embedded with another model meanwhile")
        return found

    @property
    def _is_large(self) -> bool:
        return self.model.vectors >= INDEX_FROM and self.index_type is not None

    def _exact(self, shard: Shard, literal: str, depth: int, scope: Scope | None) -> list[Found]:
        within, values = scope.within("v.did", shard) if scope is not None else ("", [])
        limit = depth + depth // 2 + 16
        while True:
            rows = self.database.planned(
                "WITH few AS MATERIALIZED (SELECT v.pid, v.did, v.data <=> %s::vector AS far FROM vectors v "
                f"WHERE v.cid = {shard.cid} AND v.mid = {self.model.mid}{within}) "
                "SELECT 1 - far, pid, did FROM few ORDER BY far, did, pid LIMIT %s",
                (literal, *values, limit),
            )
            found = _best(rows, depth)
            if len(found) >= depth or len(rows) < limit:
                return found
            limit *= 4  # the passages of a few long documents fill the list

    def _by_index(self, shard: Shard, literal: str, depth: int, scope: Scope | None) -> list[Found]:
        limit = depth + depth // 2 + 16
        if scope is not None:
            limit = max(limit, int(limit * 1.5 * self.model.vectors / max(1, scope.count)))
        kind, dim = self.index_type, self.model.dim
        distance = f"(v.data::{kind}({dim})) <=> %s::{kind}({dim})"
        while limit <= MAX_READ or scope is None:
            candidates = limit * OVERSAMPLING if kind == "halfvec" else limit
            rows = self.database.planned(
                "WITH near AS MATERIALIZED (SELECT v.pid, v.did, v.data FROM vectors v "
                f"WHERE v.cid = {shard.cid} AND v.mid = {self.model.mid} ORDER BY {distance} LIMIT %s) "
                "SELECT 1 - (data <=> %s::vector), pid, did FROM near",
                (literal, candidates, literal),
            )
            if scope is not None:
                scope.expect(did for _, _, did in rows)
            found = _best([row for row in rows if scope is None or row[2] in scope], depth)
            if len(found) >= depth or (scope is None and len(rows) < candidates):
                return found
            limit *= 4
            if scope is not None and len(rows) < candidates:
                break  # the index was read as far as pgvector does
        return self._exact(shard, literal, depth, scope)  # no document may be missed

    # --- the index ----------------------------------------------------------------------------------------------------

    def wants_index(self) -> bool:
        """Tell whether the collection is large enough for an index, and can be written."""
        return self._is_large and not self.database.read_only

    def has_index(self) -> bool:
        """Tell whether there is a valid index for every shard."""
        sql = "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid"
        names = [self.database.address.qualified(index_name(shard, self.model.mid)) for shard in self.shards.all]
        return all(self.database.all(sql, (name,)) for name in names)

    def build_index(self) -> None:
        """Build the index while others read and write; do nothing where another process builds it."""
        with self.database.locked(index_name(self.shards.all[0], self.model.mid)) as granted:
            if granted and not self.has_index():
                self.database.outside(self._build)

    def _build(self, connection: Connection) -> None:
        home = self.database.server.vector_schema
        for shard in self.shards.all:
            name = index_name(shard, self.model.mid)
            connection.execute(
                f"DROP INDEX IF EXISTS {self.database.address.qualified(name)}"
            )  # the rest of a killed process is not valid
            connection.execute(
                f"CREATE INDEX CONCURRENTLY {name} ON {self.database.address.qualified('vectors')} USING hnsw "
                f"((data::{home}.{self.index_type}({self.model.dim})) {home}.{self.index_type}_cosine_ops) "
                f"WHERE cid = {shard.cid} AND mid = {self.model.mid}"
            )


def _best(rows: list[tuple[Any, ...]], depth: int) -> list[Found]:
    return best_passages([row for row in rows if row[0] == row[0]], depth)  # NaN: the vector is all zeros
