"""Which passages mean something like this?

Cosine by pgvector. A small collection, or what a narrow filter leaves of a large one, is compared exactly; beyond that
an HNSW index a model and part proposes and the exact cosine decides. Where a filter allows many, the index is read
further (``hnsw.iterative_scan``, in relaxed order, so what comes back is sorted again) and its rows are sifted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trivet.errors import ModelReplacedError
from trivet.stores.contract import Found, Model
from trivet.stores.postgres.database import Connection, Database
from trivet.stores.postgres.parts import Part, Parts
from trivet.stores.postgres.ranks import best
from trivet.stores.postgres.scope import Scope

if TYPE_CHECKING:
    from trivet.types import Vector

INDEX_FROM = 8_192  # vectors; fewer are compared one by one in a few milliseconds
EXACT_UP_TO = 8_000  # documents a scope allows, likewise
MOST_READ = 20_000  # rows the index is asked for before the exact comparison is cheaper
MOST_VECTOR, MOST_HALFVEC = 2_000, 4_000  # dimensions pgvector's index takes
REFINE = 2  # times as many as wanted are taken from an index of half the precision


@dataclass(frozen=True, slots=True)
class Meaning:
    """The vectors of one model of a collection."""

    database: Database
    parts: Parts
    model: Model

    def index(self, part: Part) -> str:
        return f"meaning_{part.cid}_{self.model.mid}"

    @property
    def kind(self) -> str | None:
        """What the index holds; None: more dimensions than an index takes."""
        if self.model.dim > MOST_HALFVEC:
            return None
        return "halfvec" if self.model.dim > MOST_VECTOR else self.database.address.index

    def near(self, vector: Vector, depth: int, scope: Scope | None) -> list[Found]:
        literal = f"[{','.join(map(repr, vector.tolist()))}]"
        few = not self._is_large or (scope is not None and scope.count <= EXACT_UP_TO)
        look = self._exactly if few else self._by_index
        rows = self.database.together(lambda part: look(part, literal, depth, scope), self.parts.every)
        found = best([row for own in rows for row in own], depth)
        if (not found or self.parts.spread) and not self.database.all(
            "SELECT 1 FROM models WHERE cid = %s AND mid = %s", (self.parts.root, self.model.mid)
        ):  # asked after the vectors were read: a model that is still there had all of them then
            raise ModelReplacedError("the collection was re-embedded with another model meanwhile")
        return found

    @property
    def _is_large(self) -> bool:
        return self.model.vectors >= INDEX_FROM and self.kind is not None

    def _exactly(self, part: Part, literal: str, depth: int, scope: Scope | None) -> list[Found]:
        """Every vector that may be seen."""
        within, values = scope.within("v.did", part) if scope is not None else ("", [])
        limit = depth + depth // 2 + 16
        while True:
            rows = self.database.planned(
                "WITH few AS MATERIALIZED (SELECT v.pid, v.did, v.data <=> %s::vector AS far FROM vectors v "
                f"WHERE v.cid = {part.cid} AND v.mid = {self.model.mid}{within}) "
                "SELECT 1 - far, pid, did FROM few ORDER BY far, did, pid LIMIT %s",
                (literal, *values, limit),
            )
            found = _best(rows, depth)
            if len(found) >= depth or len(rows) < limit:
                return found
            limit *= 4  # a few long documents fill the list with their passages

    def _by_index(self, part: Part, literal: str, depth: int, scope: Scope | None) -> list[Found]:
        limit = depth + depth // 2 + 16
        if scope is not None:
            limit = max(limit, int(limit * 1.5 * self.model.vectors / max(1, scope.count)))
        kind, dim = self.kind, self.model.dim
        near = f"(v.data::{kind}({dim})) <=> %s::{kind}({dim})"
        while limit <= MOST_READ or scope is None:
            wanted = limit * REFINE if kind == "halfvec" else limit
            rows = self.database.planned(
                "WITH near AS MATERIALIZED (SELECT v.pid, v.did, v.data FROM vectors v "
                f"WHERE v.cid = {part.cid} AND v.mid = {self.model.mid} ORDER BY {near} LIMIT %s) "
                "SELECT 1 - (data <=> %s::vector), pid, did FROM near",
                (literal, wanted, literal),
            )
            if scope is not None:
                scope.expect(did for _, _, did in rows)
            found = _best([row for row in rows if scope is None or row[2] in scope], depth)
            if len(found) >= depth or (scope is None and len(rows) < wanted):
                return found
            limit *= 4
            if scope is not None and len(rows) < wanted:
                break  # the index was read as far as it may be
        return self._exactly(part, literal, depth, scope)  # nothing may be missed

    # --- the index --------------------------------------------------------------------------------------------------

    def wants_index(self) -> bool:
        return self._is_large and not self.database.read_only

    def has_index(self) -> bool:
        sql = "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid"
        return all(self.database.all(sql, (self.index(part),)) for part in self.parts.every)

    def build(self) -> None:
        """Make the index, while others read and write; who is second finds it done."""
        self.database.outside(self._build)

    def _build(self, connection: Connection) -> None:
        lock = f"{self.database.address.schema}.{self.index(self.parts.every[0])}"
        (mine,) = connection.execute("SELECT pg_try_advisory_lock(hashtext(%s))", (lock,)).fetchone() or (False,)
        if not mine or self.has_index():
            return
        connection.execute("SET maintenance_work_mem TO '512MB'")
        for part in self.parts.every:
            # what a killed process left is not valid
            connection.execute(f"DROP INDEX IF EXISTS {self.index(part)}")
            connection.execute(
                f"CREATE INDEX CONCURRENTLY {self.index(part)} ON vectors USING hnsw "
                f"((data::{self.kind}({self.model.dim})) {self.kind}_cosine_ops) "
                f"WHERE cid = {part.cid} AND mid = {self.model.mid}"
            )


def _best(rows: list[tuple[Any, ...]], depth: int) -> list[Found]:
    return best([row for row in rows if row[0] == row[0]], depth)  # a vector of zeros is near to nothing: NaN
