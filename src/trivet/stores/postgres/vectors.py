"""The vectors and embedding models of a collection on a PostgreSQL server."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from trivet.errors import InputError, TrivetError
from trivet.stores.background_task import Start
from trivet.stores.contract import Found, Model, State, Text
from trivet.stores.postgres import vector_rows
from trivet.stores.postgres.rows import Rows
from trivet.stores.postgres.scope import Scope
from trivet.stores.postgres.shards import Shard
from trivet.stores.postgres.vector_search import VectorSearch, drop_indexes

if TYPE_CHECKING:
    from trivet.types import Vector

MAX_DIM = 16_000  # dimensions that pgvector stores
_HAS_VECTOR = "(SELECT 1 FROM vectors w WHERE w.cid = %s AND w.mid = %s AND w.pid = p.pid)"

Lock = Callable[[str], contextlib.AbstractContextManager[bool]]


class PostgresVectors:
    """The vectors of one collection, by model."""

    def __init__(self, rows: Rows, start: Start, lock: Lock) -> None:
        """``lock`` takes a lock of the whole server."""
        self._rows, self._start, self._lock = rows, start, lock
        self._indexed: set[int] = set()  # models whose index is known to exist or is being built

    # --- search -------------------------------------------------------------------------------------------------------

    def is_current(self, state: State) -> bool:
        return True  # the server updates its indexes with every write

    def search(self, vector: Vector, model: Model, depth: int, scope: Scope | None, version: int) -> list[Found]:
        search = self.of_model(model)
        if model.mid not in self._indexed:
            self._build_in_background(search)
        return search.nearest(vector, depth, scope)

    def of_model(self, model: Model) -> VectorSearch:
        """Return the search in the vectors of one model."""
        return VectorSearch(self._rows.database, self._rows.shards, model)

    def _build_in_background(self, search: VectorSearch) -> None:
        if search.wants_index():
            self._indexed.add(search.model.mid)
            if not search.has_index():
                self._start(self._build, search)

    def _build(self, search: VectorSearch) -> None:
        try:
            with contextlib.suppress(TrivetError):  # closed meanwhile, or not allowed: exact search is enough
                search.build_index()
        finally:
            self._indexed.discard(search.model.mid)

    # --- models -------------------------------------------------------------------------------------------------------

    def add_model(self, id: str, spec: str, dim: int, answers: bool) -> Model:
        if isinstance(dim, bool) or not isinstance(dim, int) or dim < 1:  # an embedder of the caller may say anything
            raise InputError(f"embedder {spec!r}: its dim is {dim!r}; it must be a whole number from 1 up")
        if dim > MAX_DIM:
            raise InputError(f"embedder {spec!r}: its dim is {dim:,}; pgvector keeps {MAX_DIM:,} at most")
        root = self._rows.root
        with self._rows.changing() as transaction:
            sql = "UPDATE models SET spec = %s WHERE cid = %s AND id = %s RETURNING mid, id, spec, dim, vectors"
            rows = transaction.all(sql, (spec, root, id))
            if not rows:
                rows = [(transaction.take("model", 1), id, spec, dim, 0)]
                transaction.execute(
                    "INSERT INTO models (cid, mid, id, spec, dim, vectors) VALUES (%s, %s, %s, %s, %s, %s)",
                    (root, *rows[0]),
                )
            model = Model(*rows[0])
            if answers:
                transaction.execute("UPDATE heads SET mid = %s WHERE cid = %s", (model.mid, root))
        return model

    def model_id(self, mid: int) -> str:
        rows = self._rows.all("SELECT id FROM models WHERE cid = %s AND mid = %s", (self._rows.root, mid))
        return str(rows[0][0]) if rows else ""

    def remove_other_models(self, mid: int) -> None:
        with self._rows.changing() as transaction:
            for shard in self._rows.shards.all:
                transaction.execute("DELETE FROM vectors WHERE cid = %s AND mid <> %s", (shard.cid, mid))
            sql = "DELETE FROM models WHERE cid = %s AND mid <> %s RETURNING mid"
            removed = transaction.all(sql, (self._rows.root, mid))
        for (old,) in removed:
            drop_indexes(self._rows.database, self._rows.shards, old)

    # --- vectors ------------------------------------------------------------------------------------------------------

    def missing(self, mid: int) -> int:
        sql = (
            "SELECT h.passages - m.vectors FROM heads h JOIN models m ON m.cid = h.cid WHERE h.cid = %s AND m.mid = %s"
        )
        rows = self._rows.all(sql, (self._rows.root, mid))
        return int(rows[0][0]) if rows else 0

    def next_missing(self, mid: int, after: int, limit: int) -> list[Text]:
        sql = (
            "SELECT p.pid, p.did, p.start, p.stop FROM passages p WHERE p.cid = %s AND p.pid > %s "
            f"AND NOT EXISTS {_HAS_VECTOR} ORDER BY p.pid LIMIT %s"
        )
        spans = sorted(
            row
            for shard in self._rows.shards.all
            for row in self._rows.all(sql, (shard.cid, after, shard.cid, mid, limit))
        )[:limit]
        # cut in Python, by its characters; and the text of a long document is read once for all its passages
        sql = "SELECT did, title, text FROM documents WHERE cid = %s AND did = ANY(%s)"
        dids = list({did for _, did, _, _ in spans})
        texts = {did: (title, text) for did, title, text in self._rows.by_number(sql, dids)}
        return [(pid, did, texts[did][0], texts[did][1][start:stop]) for pid, did, start, stop in spans if did in texts]

    def known(self, mid: int, pids: Sequence[int] | None = None) -> list[tuple[int, bytes]]:
        among = "" if pids is None else " AND p.pid = ANY(%s)"
        sql = (
            "SELECT DISTINCT ON (p.pid) p.pid, vector_send(v.data) FROM passages p "
            "JOIN passages q ON q.cid = p.cid AND q.hash = p.hash AND q.pid <> p.pid "
            "JOIN vectors v ON v.cid = q.cid AND v.mid = %s AND v.pid = q.pid "
            f"WHERE p.cid = %s{among} AND NOT EXISTS {_HAS_VECTOR}"
        )
        by_shard: Mapping[Shard, list[int] | None] = (
            self._rows.shards.by_number(pids) if pids is not None else dict.fromkeys(self._rows.shards.all)
        )
        return [
            (pid, vector_rows.from_wire(data))
            for shard, own in by_shard.items()  # the same text in another shard is embedded once more
            for pid, data in self._rows.all(sql, (mid, shard.cid, *(() if own is None else (own,)), shard.cid, mid))
        ]

    def add(self, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        with self._rows.changing() as transaction:
            vector_rows.add(transaction, mid, vectors)

    def of_documents(self, mid: int, dids: Sequence[int]) -> dict[int, bytes]:
        sql = (
            "SELECT v.did, vector_send(v.data) FROM vectors v WHERE v.cid = %s AND v.mid = %s AND v.pid IN "
            "(SELECT min(p.pid) FROM passages p WHERE p.cid = %s AND p.did = ANY(%s) "
            "GROUP BY p.did HAVING count(*) = 1)"
        )
        return {
            did: vector_rows.from_wire(data)
            for shard, own in self._rows.shards.by_number(dids).items()
            for did, data in self._rows.all(sql, (shard.cid, mid, shard.cid, own))
        }

    def by_hash(self, mid: int, dids: Sequence[int]) -> dict[int, dict[bytes, bytes]]:
        sql = (
            "SELECT p.did, p.hash, vector_send(v.data) FROM passages p "
            "JOIN vectors v ON v.cid = p.cid AND v.mid = %s AND v.pid = p.pid WHERE p.cid = %s AND p.did = ANY(%s)"
        )
        found: dict[int, dict[bytes, bytes]] = {}
        for shard, own in self._rows.shards.by_number(dids).items():
            for did, digest, data in self._rows.all(sql, (mid, shard.cid, own)):
                found.setdefault(did, {})[bytes(digest)] = vector_rows.from_wire(data)
        return found

    def embedding_lock(self) -> contextlib.AbstractContextManager[bool]:
        return self._lock(f"embed.{self._rows.root}")
