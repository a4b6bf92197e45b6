"""The vectors and embedding models of a collection on a PostgreSQL server."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from trivet.errors import InputError, TrivetError
from trivet.stores.background_task import Start
from trivet.stores.contract import Found, Model, State, Text
from trivet.stores.postgres import vector_rows
from trivet.stores.postgres.rows import Rows
from trivet.stores.postgres.scope import Scope
from trivet.stores.postgres.vector_search import VectorSearch, drop_index

if TYPE_CHECKING:
    from trivet.types import Vector

MAX_DIM = 16_000  # dimensions that pgvector stores

Lock = Callable[[str], contextlib.AbstractContextManager[bool]]


class PostgresVectors:
    """The vectors of one collection, by model."""

    def __init__(self, rows: Rows, start: Start, lock: Lock) -> None:
        """``lock`` takes a lock of the whole server."""
        self._rows, self._start, self._lock = rows, start, lock
        self._documents = (-1, 0)  # a version, and how many documents it has
        self._indexed: set[int] = set()  # models whose index is known to exist or is being built

    # --- search -------------------------------------------------------------------------------------------------------

    def is_current(self, state: State) -> bool:
        return True  # the server updates its indexes with every write

    def search(self, vector: Vector, model: Model, depth: int, scope: Scope | None, version: int) -> list[Found]:
        search = self.of_model(model)
        if model.mid not in self._indexed:
            self._build_in_background(search)
        return search.nearest(vector, depth, scope, self._documents_at(version))

    def _documents_at(self, version: int) -> int:
        """Return how many documents there are, read once for each version."""
        known, documents = self._documents
        if known != version:
            documents = int(self._rows.head("documents")[0])
            self._documents = (version, documents)
        return documents

    def of_model(self, model: Model) -> VectorSearch:
        """Return the search in the vectors of one model."""
        return VectorSearch(self._rows.database, self._rows.tables, model)

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
            tables = transaction.tables
            transaction.execute(f"DELETE FROM {tables.vectors} WHERE {tables.of()} AND mid <> %s", (mid,))
            sql = f"DELETE FROM models WHERE {tables.of()} AND mid <> %s RETURNING mid"
            removed = transaction.all(sql, (mid,))
        for (old,) in removed:
            drop_index(self._rows.database, tables, old)

    # --- vectors ------------------------------------------------------------------------------------------------------

    def missing(self, mid: int) -> int:
        sql = (
            "SELECT h.passages - m.vectors FROM heads h JOIN models m ON m.cid = h.cid WHERE h.cid = %s AND m.mid = %s"
        )
        rows = self._rows.all(sql, (self._rows.root, mid))
        return int(rows[0][0]) if rows else 0

    def next_missing(self, mid: int, after: int, limit: int) -> list[Text]:
        tables = self._rows.tables
        sql = (
            f"SELECT p.pid, p.did, p.start, p.stop FROM {tables.passages} p WHERE {tables.of('p')} AND p.pid > %s "
            f"AND NOT {self._has_vector(mid)} ORDER BY p.pid LIMIT %s"
        )
        spans = self._rows.all(sql, (after, limit))
        # cut in Python, by its characters; and the text of a long document is read once for all its passages
        dids = list({did for _, did, _, _ in spans})
        rows = self._rows.by_number(f"SELECT did, title, text FROM {tables.documents}", "did", dids)
        texts = {did: (title, text) for did, title, text in rows}
        return [(pid, did, texts[did][0], texts[did][1][start:stop]) for pid, did, start, stop in spans if did in texts]

    def _has_vector(self, mid: int) -> str:
        """Return the condition that a passage ``p`` has a vector of a model."""
        tables = self._rows.tables
        same = f"{tables.beside('w', 'p')} AND w.mid = {int(mid)} AND w.pid = p.pid"
        return f"EXISTS (SELECT 1 FROM {tables.vectors} w WHERE {same})"

    def known(self, mid: int, pids: Sequence[int] | None = None) -> list[tuple[int, bytes]]:
        tables = self._rows.tables
        # of a distributed collection, the same text in another part is embedded once more
        sql = (
            f"SELECT DISTINCT ON (p.pid) p.pid, vector_send(v.data) FROM {tables.passages} p "
            f"JOIN {tables.passages} q ON {tables.beside('q', 'p')} AND q.hash = p.hash AND q.pid <> p.pid "
            f"JOIN {tables.vectors} v ON {tables.beside('v', 'q')} AND v.mid = {int(mid)} AND v.pid = q.pid"
        )
        without = f" AND NOT {self._has_vector(mid)}"
        if pids is None:
            rows = self._rows.all(f"{sql} WHERE {tables.of('p')}{without}")
        else:
            rows = self._rows.by_number(sql, "p.pid", pids, without)
        return [(pid, vector_rows.from_wire(data)) for pid, data in rows]

    def add(self, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        with self._rows.changing() as transaction:
            vector_rows.add(transaction, mid, vectors)

    def of_documents(self, mid: int, dids: Sequence[int]) -> dict[int, bytes]:
        tables = self._rows.tables
        other = f"{tables.beside('q', 'p')} AND q.did = p.did AND q.pid <> p.pid"
        rows = self._rows.by_number(
            f"SELECT p.did, vector_send(v.data) FROM {tables.passages} p "
            f"JOIN {tables.vectors} v ON {tables.beside('v', 'p')} AND v.mid = {int(mid)} AND v.pid = p.pid",
            "p.did",
            dids,
            f" AND NOT EXISTS (SELECT 1 FROM {tables.passages} q WHERE {other})",
        )
        return {did: vector_rows.from_wire(data) for did, data in rows}

    def by_hash(self, mid: int, dids: Sequence[int]) -> dict[int, dict[bytes, bytes]]:
        tables = self._rows.tables
        rows = self._rows.by_number(
            f"SELECT p.did, p.hash, vector_send(v.data) FROM {tables.passages} p "
            f"JOIN {tables.vectors} v ON {tables.beside('v', 'p')} AND v.mid = {int(mid)} AND v.pid = p.pid",
            "p.did",
            dids,
        )
        found: dict[int, dict[bytes, bytes]] = {}
        for did, digest, data in rows:
            found.setdefault(did, {})[bytes(digest)] = vector_rows.from_wire(data)
        return found

    def embedding_lock(self) -> contextlib.AbstractContextManager[bool]:
        return self._lock(f"embed.{self._rows.root}")
