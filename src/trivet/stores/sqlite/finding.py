"""What do the legs find in this collection?

Every question is told the version it was asked in; an index first reads what it has missed, then answers.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trivet.errors import StoreError, TrivetError
from trivet.stores.contract import Model, State
from trivet.stores.sqlite.projections import Projections, dense

if TYPE_CHECKING:
    from trivet.analysis import ParsedQuery
    from trivet.graph.block import Graph
    from trivet.graph.walk import Tie
    from trivet.stores.sqlite.forward import Places
    from trivet.stores.sqlite.graph import GraphIndex
    from trivet.stores.sqlite.meaning import VectorIndex
    from trivet.stores.sqlite.scope import Scope
    from trivet.stores.sqlite.store import SqliteStore
    from trivet.stores.sqlite.tail import Found
    from trivet.stores.sqlite.terms import TermIndex
    from trivet.stores.sqlite.ties import Sharing
    from trivet.types import Vector

A_FEW_WRITES = 4  # transactions since an index last looked: what they brought is read in a millisecond, mostly
MANY_BEHIND = 5_000  # passages the graph has not read: some seconds


class Finding(Projections):
    def __init__(self, store: SqliteStore, cid: int, uid: str, name: str, config: Mapping[str, Any]) -> None:
        super().__init__(store, cid, uid, name, config)
        self._compacting, self._settling = threading.Event(), threading.Event()
        # at which version: is there a link that a walk may take, and which documents share a value?
        self._tied: tuple[int, bool, Sharing] = (-1, False, {})

    def _forget(self) -> None:
        super()._forget()
        self._tied = (-1, False, {})

    def find_words(
        self, query: ParsedQuery, match: str, depth: int, scope: Scope | None, version: int
    ) -> tuple[list[Found], float, tuple[str, ...]]:
        index = self.words()
        index.catch_up(version)
        return index.healed(lambda: index.bm25(query, match, depth, scope))

    def places(self, pids: Sequence[int], terms: Collection[str]) -> dict[int, Places]:
        """pid → which of these terms its title has, and where each stands in its text; of those that are known."""
        return self.words().places(pids, terms)

    def find_trigrams(self, terms: Sequence[str], depth: int, scope: Scope | None, version: int) -> list[Found]:
        index = self.trigrams()
        index.catch_up(version)
        return index.healed(lambda: index.likeliest([dense(term) for term in terms], depth, scope))

    def find_near(self, vector: Vector, model: Model, depth: int, scope: Scope | None, version: int) -> list[Found]:
        index = self.meaning(model)
        index.catch_up(version)
        if index.wants_compacting and not self._compacting.is_set():
            self._compacting.set()
            self.store.start(self._compact, index)
        return index.best(vector, depth, scope)

    def _compact(self, index: VectorIndex) -> None:
        try:
            with contextlib.suppress(TrivetError):  # closed meanwhile: the next process does it
                index.compact()
        finally:
            self._compacting.clear()

    def graph(self, version: int) -> Graph:
        """Who names what. Much that is new is read in the background: a search does not wait minutes for a leg."""
        index = self.concepts()
        if not index.is_current(version) and (self._reading.is_set() or index.is_far_behind(MANY_BEHIND)):
            self.read_connections()
            raise StoreError("its connections are being read; it answers after that")
        found = index.graph(version)
        if index.wants_settling and not self._settling.is_set():
            self._settling.set()
            self.store.start(self._settle, index)
        return found

    def _settle(self, index: GraphIndex) -> None:
        try:
            with contextlib.suppress(TrivetError):  # closed meanwhile: the next process does it
                index.settle()
        finally:
            self._settling.clear()

    def ties(self, dids: Sequence[int], version: int) -> list[Tie]:
        from trivet.stores.sqlite import ties

        with self._database.explained():
            connection = self._database.read()
            known, linked, sharing = self._tied
            if known != version or len(sharing) > ties.MOST_SHARING:
                linked, sharing = ties.any_links(connection, self.cid), {}
                self._tied = (version, linked, sharing)
            return ties.ties(connection, self.cid, dids, linked, sharing)

    def is_current(self, leg: str, state: State) -> bool:
        """Would this leg only have to look, with next to nothing to read or to write first?"""
        if leg == "graph":
            return self._graph is not None and self._graph.is_current(state.version)
        index: TermIndex | VectorIndex | None = self._words if leg == "lexical" else self._trigrams
        if leg == "dense":
            index = self._meanings.get(state.model.mid) if state.model is not None else None
        return index is not None and index.is_near(state.version, A_FEW_WRITES)

    @property
    def spelling(self) -> Finding:
        return self
