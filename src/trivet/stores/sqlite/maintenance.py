"""Updates, checks and repairs of the indexes of one collection."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import Timeout

from trivet.errors import ModelReplacedError, TrivetError
from trivet.stores.background_task import BackgroundTask, Start
from trivet.stores.contract import State
from trivet.stores.indexes.file_locks import check_not_stopped
from trivet.stores.sqlite.graph import SqliteGraphIndex
from trivet.stores.sqlite.imports import SqliteImportLog
from trivet.stores.sqlite.lexical import SqliteLexicalIndex
from trivet.stores.sqlite.rows import CollectionRows
from trivet.stores.sqlite.trigrams import SqliteTrigramIndex
from trivet.stores.sqlite.vectors import SqliteVectorIndex
from trivet.types import Progress, StepProgress

if TYPE_CHECKING:
    from trivet.stores.indexes.graph_index import GraphIndex
    from trivet.stores.sqlite.indexer import Indexer
    from trivet.stores.sqlite.term_index import TermIndex
    from trivet.stores.sqlite.vector_index import VectorIndex

PRUNE_FROM = 1_000  # removals; fewer are read in a millisecond
PRUNE_SHARE = 0.2  # of the passages that exist
MIN_TAIL = 1_000  # vectors; a smaller tail is not written to disk
QUIET_TRIES = 10  # attempts to compare counts while nobody writes

_COUNTS = (  # one statement sees one state: another process may be writing
    "SELECT c.documents, (SELECT count(*) FROM documents d WHERE d.cid = c.cid), "
    "c.passages, (SELECT count(*) FROM passages p WHERE p.cid = c.cid), "
    "coalesce(m.vectors, 0), (SELECT count(*) FROM vectors v WHERE v.mid = m.mid), "
    "(SELECT count(*) FROM documents d WHERE d.cid = c.cid "
    "AND NOT EXISTS (SELECT 1 FROM passages p WHERE p.did = d.did)) "
    "FROM collections c LEFT JOIN models m ON m.mid = c.mid WHERE c.cid = ?"
)


class SqliteMaintenance:
    """Updates, checks and repairs of the term, vector and graph indexes."""

    def __init__(
        self,
        rows: CollectionRows,
        lexical: SqliteLexicalIndex,
        trigrams: SqliteTrigramIndex,
        vectors: SqliteVectorIndex,
        graph: SqliteGraphIndex,
        imports: SqliteImportLog,
        ids_of: Callable[..., dict[int, str]],
        folder: Path,
        start: Start,
    ) -> None:
        """``ids_of`` maps document numbers to ids; ``folder`` has all indexes of the collection."""
        self._rows, self._folder, self._imports, self._ids_of = rows, folder, imports, ids_of
        self._lexical, self._trigrams, self._vectors, self._graph = lexical, trigrams, vectors, graph
        self._checked_disk = False
        self._removals = 0  # of this process, since it last looked whether to prune
        # where the store is closed, or another process works on an index, a later call prunes
        self._pruning = BackgroundTask(start, self._prune_if_many, TrivetError, Timeout, OSError)

    # --- updates ------------------------------------------------------------------------------------------------------

    def open_stored(self) -> None:
        """Open the indexes on disk, once, before the first write.

        After a write, an index that is ahead of a restored backup could not be told from one that is not.
        """
        if not self._checked_disk:
            self._checked_disk = True
            for part in (self._lexical, self._trigrams, self._graph):
                part.opened.stored()
            self._vectors.open_stored()

    def update(self, progress: Progress | None = None, graph: bool = False, vectors: bool = True) -> None:
        self.update_lexical(progress)
        if vectors:
            self.update_vectors()
        if graph or self._graph.opened.index is not None:
            self._graph.update(progress=progress)

    def update_lexical(self, progress: Progress | None = None) -> None:
        self._lexical.opened.open().index.catch_up(self._rows.state().version, progress)

    def update_vectors(self) -> None:
        state = self._rows.state()
        if state.model is not None and state.model.vectors:
            index = self._vectors.index(state.model)
            index.catch_up(state.version)
            index.compact(at_least=MIN_TAIL)

    def indexer(self) -> Indexer | None:
        """Start a process that indexes terms while this one writes; None where there is only one core."""
        from trivet.stores.sqlite.indexer import Indexer, cores

        return Indexer(self._rows.database.path, self._rows.name) if cores() > 1 else None

    def check_locks(self) -> None:
        check_not_stopped([*self._folder.glob("*.lock"), *self._folder.glob("*/lock")])

    def discard(self) -> None:
        for part in (self._lexical.opened, self._trigrams.opened, self._graph.opened, self._vectors):
            part.discard()
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- checks -------------------------------------------------------------------------------------------------------

    def verify(self, progress: StepProgress | None = None) -> tuple[list[str], dict[str, int]]:
        problems = self.row_problems()
        if problems:  # repeating an import may repair them
            self._imports.clear()
        found, compared = self._compare(progress)
        state, indexed = self._catch_up(bool(found))
        checked = {"documents": state.documents, "passages": state.passages, "words": indexed}
        if indexed != state.passages and not found:
            found.append(f"words: {indexed:,} passages indexed, {state.passages:,} stored; run rebuild")
        if state.model is not None:
            checked["vectors"] = state.model.vectors
        self._imports.keep_only(state)
        return [*problems, *found], checked | compared

    def row_problems(self) -> list[str]:
        """Compare the counts that every search relies on with the rows."""
        self._rows.state()  # refuses a collection that was dropped
        row = self._rows.all(_COUNTS, (self._rows.cid,))[0]
        found: list[str] = []
        for name, kept, rows in (("documents", *row[0:2]), ("passages", *row[2:4]), ("vectors", *row[4:6])):
            if rows != kept:
                found.append(f"{name}: the count says {kept:,}, there are {rows:,}")
        if lost := row[6]:
            found.append(f"documents: {lost:,} have no passage and cannot be found; add them again")
        return found

    def _compare(self, progress: StepProgress | None) -> tuple[list[str], dict[str, int]]:
        """Compare the content of the indexes with the records, before any index is updated."""
        self.open_stored()
        found: list[str] = []
        compared: dict[str, int] = {}
        for index in self._opened():
            if damaged := _damage(index):
                found += damaged
                continue
            report = partial(progress, f"comparing {index.name}") if progress is not None else None
            with contextlib.suppress(ModelReplacedError):  # its vectors are not used any more
                differences = index.compare(report)
                compared[index.name] = differences.compared
                found += differences.problems(self._ids_of, self._rows.name)
        return found, {name: compared[name] for name in ("trigrams", "graph") if name in compared}

    def _opened(self) -> list[TermIndex | GraphIndex | VectorIndex]:
        terms = [part.opened.index.index for part in (self._lexical, self._trigrams) if part.opened.index is not None]
        graph = self._graph.opened.index
        return [*terms, *([] if graph is None else [graph]), *self._vectors.opened()]

    def _catch_up(self, damaged: bool) -> tuple[State, int]:
        """Update the lexical and the vector index, unless one is damaged: nothing is repaired without a message.

        Return a state, and how many passages the lexical index has in it.
        """
        index = self._lexical.opened.open().index
        for _ in range(QUIET_TRIES):  # until nobody wrote in between: two states must not be compared
            state = self._rows.state()
            if not damaged:
                index.catch_up(state.version)
            indexed = index.size
            if self._rows.state().version == state.version:
                break
        else:
            indexed = state.passages  # writers never pause: there is nothing to compare
        if state.model is not None and not damaged:
            self._vectors.index(state.model).catch_up(state.version)
        return state, indexed

    # --- compacting ---------------------------------------------------------------------------------------------------

    def compact(self, progress: Progress | None = None) -> int:
        for index in self._terms_on_disk():
            index.rewrite(progress)
        for snapshot in self._snapshots_on_disk():
            snapshot.rewrite()
        self._vectors.halve()
        self._imports.clear()  # it holds ids
        return self.prune()

    def prune(self) -> int:
        """Delete the removals that every index on disk has applied; return how many there were."""
        indexes = (*self._terms_on_disk(), *self._snapshots_on_disk())
        applied = [number for index in indexes if (number := index.applied) is not None]
        cid = self._rows.cid
        with self._rows.write() as connection:
            sql = "SELECT seq FROM removed WHERE +cid = ? ORDER BY seq DESC LIMIT 1"
            last = connection.execute(sql, (cid,)).fetchone()
            if last is None:
                return 0
            cutoff = min(last[0], *applied) if applied else last[0]
            sql = "INSERT INTO pruned VALUES (?, ?) ON CONFLICT (cid) DO UPDATE SET seq = max(seq, excluded.seq)"
            connection.execute(sql, (cid, cutoff))
            return connection.execute("DELETE FROM removed WHERE +cid = ? AND seq <= ?", (cid, cutoff)).rowcount

    def note_removed(self, count: int) -> None:
        """Count removed documents; prune in the background where they have become many."""
        self._removals += count
        if self._removals >= PRUNE_FROM and not self._pruning.running:
            self._removals = 0
            self._pruning.start()

    def _prune_if_many(self) -> None:
        ((count,),) = self._rows.all("SELECT count(*) FROM removed WHERE cid = ?", (self._rows.cid,))
        if count >= PRUNE_FROM and count > PRUNE_SHARE * self._rows.state().passages:
            for index in self._terms_on_disk():
                index.settle()
            for snapshot in self._snapshots_on_disk():
                snapshot.rewrite()
            self.prune()
            self._rows.database.vacuum_if_worth_it()

    def _terms_on_disk(self) -> list[TermIndex]:
        found = [part.opened.stored() for part in (self._lexical, self._trigrams)]
        return [search.index for search in found if search is not None]

    def _snapshots_on_disk(self) -> list[VectorIndex | GraphIndex]:
        graph = self._graph.opened.stored()
        return [*self._vectors.stored(), *([] if graph is None else [graph])]


def _damage(index: TermIndex | GraphIndex | VectorIndex) -> list[str]:
    unused = [message if "run rebuild" in message else f"{message}; run rebuild" for message in index.deleted]
    return [*unused, *index.problems()]
