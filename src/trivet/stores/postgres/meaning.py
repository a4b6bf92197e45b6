"""Which passages mean something like this?

Cosine by pgvector. A small collection, or what a narrow filter leaves of a large one, is compared exactly; beyond that
an HNSW index a model proposes and the exact cosine decides. The index is read on (``hnsw.iterative_scan``) until the
filter was given enough, in relaxed order, so what comes back is sorted again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trivet.stores.contract import Found, Model
from trivet.stores.postgres.database import Connection, Database
from trivet.stores.postgres.scope import Scope
from trivet.stores.postgres.words import best

if TYPE_CHECKING:
    from trivet.types import Vector

INDEX_FROM = 8_192  # vectors; fewer are compared one by one in a few milliseconds
EXACT_UP_TO = 4_000  # documents a scope allows, likewise
MOST_VECTOR, MOST_HALFVEC = 2_000, 4_000  # dimensions pgvector's index takes
EF_SEARCH = 200  # candidates the index keeps in view; its default of 40 finds too few of the best 100
REFINE = 2  # times as many as wanted are taken from an index of half the precision


@dataclass(frozen=True, slots=True)
class Meaning:
    """The vectors of one model of a collection."""

    database: Database
    cid: int
    model: Model

    @property
    def index(self) -> str:
        return f"meaning_{self.cid}_{self.model.mid}"

    @property
    def kind(self) -> str | None:
        """What the index holds; None: more dimensions than an index takes."""
        if self.model.dim > MOST_HALFVEC:
            return None
        return "halfvec" if self.model.dim > MOST_VECTOR else self.database.address.index

    def near(self, vector: Vector, depth: int, scope: Scope | None) -> list[Found]:
        literal = f"[{','.join(map(repr, vector.tolist()))}]"
        indexed = self.model.vectors >= INDEX_FROM and self.kind is not None
        if not indexed or (scope is not None and scope.count <= EXACT_UP_TO):
            return self._until_enough(lambda limit: self._exactly(literal, limit, scope), depth)
        found = self._until_enough(lambda limit: self._by_index(literal, limit, scope), depth)
        if len(found) < depth and scope is not None:  # the index was read as far as it may be: nothing may be missed
            return self._until_enough(lambda limit: self._exactly(literal, limit, scope), depth)
        return found

    def _until_enough(self, ask: Callable[[int], list[Found]], depth: int) -> list[Found]:
        """One passage a document; asked for more while a few long documents fill the list with theirs."""
        limit = depth + depth // 2 + 16
        while True:
            rows = ask(limit)
            found = best([row for row in rows if row[0] == row[0]], depth)  # a vector of zeros is near to nothing: NaN
            if len(found) >= depth or len(rows) < limit:
                return found
            limit *= 4

    def _exactly(self, literal: str, limit: int, scope: Scope | None) -> list[Found]:
        join, values = scope.join("v.did") if scope is not None else ("", [])
        return self._rows(
            "",
            "WITH few AS MATERIALIZED (SELECT v.pid, v.did, v.data <=> %s::vector AS far FROM vectors v"
            f"{join} WHERE v.cid = {self.cid} AND v.mid = {self.model.mid}) "
            "SELECT 1 - far, pid, did FROM few ORDER BY far, did, pid LIMIT %s",
            (literal, *values, limit),
        )

    def _by_index(self, literal: str, limit: int, scope: Scope | None) -> list[Found]:
        join, values = scope.join("v.did") if scope is not None else ("", [])
        kind, dim = self.kind, self.model.dim
        half = kind == "halfvec"
        near = f"(v.data::{kind}({dim})) <=> %s::{kind}({dim})"
        settings = f"SET LOCAL hnsw.iterative_scan TO relaxed_order; SET LOCAL hnsw.ef_search TO {EF_SEARCH}"
        return self._rows(
            settings,
            "WITH near AS MATERIALIZED (SELECT v.pid, v.did, v.data FROM vectors v"
            f"{join} WHERE v.cid = {self.cid} AND v.mid = {self.model.mid} ORDER BY {near} LIMIT %s) "
            "SELECT 1 - (data <=> %s::vector), pid, did FROM near",
            (*values, literal, limit * REFINE if half else limit, literal),
        )

    def _rows(self, settings: str, sql: str, values: tuple[Any, ...]) -> list[Found]:
        if settings:
            rows = self.database.all_within(settings, sql, values)
        else:
            rows = self.database.ask(lambda connection: connection.execute(sql, values, prepare=False).fetchall())
        return [(float(score), pid, did) for score, pid, did in rows]

    # --- the index --------------------------------------------------------------------------------------------------

    def wants_index(self) -> bool:
        return self.model.vectors >= INDEX_FROM and self.kind is not None and not self.database.read_only

    def has_index(self) -> bool:
        return bool(
            self.database.all("SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid", (self.index,))
        )

    def build(self) -> None:
        """Make the index, while others read and write; who is second finds it done."""
        self.database.outside(self._build)

    def _build(self, connection: Connection) -> None:
        lock = f"{self.database.address.schema}.{self.index}"
        (mine,) = connection.execute("SELECT pg_try_advisory_lock(hashtext(%s))", (lock,)).fetchone() or (False,)
        if not mine or self.has_index():
            return
        connection.execute(f"DROP INDEX IF EXISTS {self.index}")  # what a killed process left is not valid
        connection.execute("SET maintenance_work_mem TO '512MB'")
        connection.execute(
            f"CREATE INDEX CONCURRENTLY {self.index} ON vectors USING hnsw "
            f"((data::{self.kind}({self.model.dim})) {self.kind}_cosine_ops) "
            f"WHERE cid = {self.cid} AND mid = {self.model.mid}"
        )
