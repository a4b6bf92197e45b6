"""Updates, checks and repairs of the indexes of a collection on a PostgreSQL server."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial

from trivet.errors import TrivetError
from trivet.stores.postgres import bm25_table, comparison, document_rows
from trivet.stores.postgres.counts import KeptAndActual, count
from trivet.stores.postgres.database import Connection
from trivet.stores.postgres.documents import PostgresDocuments
from trivet.stores.postgres.graph import PostgresGraph
from trivet.stores.postgres.lexical import PostgresLexical
from trivet.stores.postgres.postings import Postings
from trivet.stores.postgres.rows import Rows
from trivet.stores.postgres.tables import index_name
from trivet.stores.postgres.timeline import Timeline
from trivet.stores.postgres.transaction import Transaction
from trivet.stores.postgres.vector_search import drop_index
from trivet.stores.postgres.vectors import PostgresVectors
from trivet.types import Progress, StepProgress


class PostgresMaintenance:
    """The maintenance of one collection."""

    def __init__(
        self,
        rows: Rows,
        timeline: Timeline,
        documents: PostgresDocuments,
        lexical: PostgresLexical,
        vectors: PostgresVectors,
        graph: PostgresGraph,
    ) -> None:
        self._rows, self._timeline, self._documents = rows, timeline, documents
        self._lexical, self._vectors, self._graph = lexical, vectors, graph

    # --- updates ------------------------------------------------------------------------------------------------------

    def update(self, progress: Progress | None = None, graph: bool = False, vectors: bool = True) -> None:
        self.update_lexical(progress)
        with contextlib.suppress(TrivetError):  # the documents are stored; ``verify`` reports an index that is missing
            self._analyse()
            self._lexical.pack()
            if vectors:
                self.update_vectors()
        if graph or self._graph.in_use:
            self._graph.update()

    def update_lexical(self, progress: Progress | None = None) -> None:
        database = self._rows.database
        if database.server.bm25 and not database.read_only and not self._rows.tables.distributed:
            bm25_table.add(self._rows, progress)

    def update_vectors(self) -> None:
        model = self._timeline.state().model
        if model is not None:
            search = self._vectors.of_model(model)
            if search.wants_index() and not search.has_index():
                search.build_index()

    def _analyse(self) -> None:
        """Merge the pending entries of the inverted indexes and update the statistics of the planner after a load."""

        qualified, named = self._rows.database.address.qualified, self._rows.tables

        def work(connection: Connection) -> None:
            if not self._rows.database.server.citus:  # there the workers do it
                for index in (f"{named.passages}_words", f"{named.passages}_trigrams"):
                    connection.execute(f"SELECT gin_clean_pending_list('{qualified(index)}')")
            written = (named.documents, named.passages, named.vectors, named.fields, "lexicon")
            tables = ", ".join(map(qualified, written))
            connection.execute(f"ANALYZE {tables}")

        self._rows.database.outside(work)

    def indexer(self) -> None:
        """Return None: the server indexes with every write."""

    def check_locks(self) -> None:
        """Do nothing: the server ends the locks of a process with its connection."""

    # --- repairs ------------------------------------------------------------------------------------------------------

    def compact(self, progress: Progress | None = None) -> int:
        self._graph.index().rewrite()
        self._recount()
        self._lexical.pack()
        applied = self._graph.index().applied
        with self._rows.locked() as transaction:
            sql = "UPDATE heads SET pruned = greatest(pruned, least(last_removed, %s)) WHERE cid = %s"
            transaction.execute(sql, (applied, self._rows.root))  # greatest() and least() ignore a null
            sql = "DELETE FROM removed WHERE cid = %s AND seq <= (SELECT pruned FROM heads WHERE cid = %s)"
            return transaction.execute(sql, (self._rows.root, self._rows.root)).rowcount

    def discard(self) -> None:
        self._graph.index().discard()
        bm25_table.drop(self._rows)
        self._recount()
        self._lexical.drop_caches()
        for (mid,) in self._rows.all("SELECT mid FROM models WHERE cid = %s", (self._rows.root,)):
            drop_index(self._rows.database, self._rows.tables, mid)

    def _recount(self) -> None:
        """Repair the terms of passages, count terms and vectors again, and delete the postings."""
        with self._rows.locked() as transaction:
            transaction.execute("SET LOCAL statement_timeout = 0")
            comparison.repair(transaction)
            document_rows.recount_terms(transaction)
            Postings(self._rows.database, transaction.tables).delete(transaction.connection)
            tables = transaction.tables
            root, length = self._rows.root, self._one(transaction, "coalesce(sum(length), 0)", tables.passages)
            documents, passages = (
                self._one(transaction, "count(*)", table) for table in (tables.documents, tables.passages)
            )
            sql = "UPDATE heads SET documents = %s, passages = %s, terms = %s WHERE cid = %s"
            transaction.execute(sql, (documents, passages, length, root))
            for (mid,) in transaction.all("SELECT mid FROM models WHERE cid = %s", (root,)):
                vectors = self._one(transaction, "count(*)", tables.vectors, f" AND mid = {int(mid)}")
                sql = "UPDATE models SET vectors = %s WHERE cid = %s AND mid = %s"
                transaction.execute(sql, (vectors, root, mid))

    def _one(self, source: Rows | Transaction, expression: str, table: str, condition: str = "") -> int:
        sql = f"SELECT {expression} FROM {table} WHERE {self._rows.tables.of()}{condition}"
        return int(source.all(sql)[0][0])

    # --- checks -------------------------------------------------------------------------------------------------------

    def verify(self, progress: StepProgress | None = None) -> tuple[list[str], dict[str, int]]:
        state = self._timeline.state()
        counted = self._count()
        found = counted.problems()
        checked = {"documents": state.documents, "passages": state.passages, "words": state.passages}
        if counted.bm25:
            sql = f"SELECT (SELECT count(*) FROM {self._rows.bm25_table}), (SELECT passages FROM heads WHERE cid = %s)"
            indexed, passages = self._rows.all(sql, (self._rows.root,))[0]
            checked["words"] = indexed
            if indexed != passages:
                found.append(f"lexical: {indexed:,} passages indexed, {passages:,} stored; run rebuild")
        if state.model is not None:
            checked["vectors"] = state.model.vectors
            search = self._vectors.of_model(state.model)
            if search.wants_index() and not search.has_index():
                name = index_name(self._rows.tables, state.model.mid)
                found.append(f"vectors: there is no index {name!r}; run rebuild")
        found += self._compare(partial(progress, "comparing words") if progress is not None else None)
        graph = self._graph.compare(partial(progress, "comparing graph") if progress is not None else None)
        if graph is not None:
            checked["graph"] = graph.compared
            found += graph.problems(self._ids_of, self._rows.name)
        return found, checked

    def _count(self) -> KeptAndActual:
        if self._rows.tables.distributed and not self._rows.database.read_only:
            with self._rows.locked() as transaction:  # no statement reads all workers at one moment: writers wait
                return count(transaction.all, self._rows.tables)
        return count(self._rows.all, self._rows.tables)

    def _compare(self, report: Progress | None) -> list[str]:
        rows = self._rows
        with contextlib.ExitStack() as stack:
            source: Rows | Transaction = rows
            if (
                rows.database.server.citus and not rows.database.read_only
            ):  # no snapshot spans the workers: writers wait
                source = stack.enter_context(rows.locked())
                source.execute("SET LOCAL statement_timeout = 0")
            else:
                stack.enter_context(rows.snapshot())
                rows.database.ask(lambda connection: connection.execute("SET LOCAL statement_timeout = 0"))
            found = comparison.problems(source.all, rows.tables, rows.analyzer, report)
            ((kept,),) = source.all("SELECT terms FROM heads WHERE cid = %s", (rows.root,))
            actual = self._one(source, "coalesce(sum(length), 0)", rows.tables.passages)
        if kept != actual:
            found.append(f"terms: the count says {kept:,}, there are {actual:,}; run rebuild")
        return found

    def _ids_of(self, dids: Sequence[int]) -> dict[int, str]:
        return {did: document.id for did, document in self._documents.fetch(dids).items()}
