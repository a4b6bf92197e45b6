"""The lexical index of one collection: terms of the passages, ranked by BM25."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trivet.stores.contract import Found, State
from trivet.stores.sqlite.change_feed import ChangeFeed
from trivet.stores.sqlite.opened_index import OpenedIndex
from trivet.stores.sqlite.rows import CollectionRows
from trivet.text.analysis import Analyzer

if TYPE_CHECKING:
    from trivet.stores.sqlite.forward_index import Positions
    from trivet.stores.sqlite.scope import Scope
    from trivet.stores.sqlite.term_search import TermSearch
    from trivet.text.analysis import ParsedQuery

A_FEW_WRITES = 4  # transactions since an index was updated: what they brought is read in about a millisecond


class SqliteLexicalIndex:
    """BM25 over the words of the passages. An index reads what is new before it answers."""

    def __init__(self, rows: CollectionRows, feed: ChangeFeed, folder: Path, analyzer: Analyzer) -> None:
        def open(folder: Path) -> TermSearch:
            from trivet.stores.sqlite.term_index import TermIndex
            from trivet.stores.sqlite.term_search import TermSearch

            identity = f"{analyzer.id}/{rows.identity}"
            return TermSearch(TermIndex(folder, feed, analyzer.line, identity, halves=analyzer.halves))

        self.opened = OpenedIndex(folder, open)
        rows.on_reset(self.opened.reset)

    def search(
        self, query: ParsedQuery, match: str, depth: int, scope: Scope | None, version: int
    ) -> tuple[list[Found], float, tuple[str, ...]]:
        search = self.opened.index or self.opened.open()
        search.index.catch_up(version)
        return search.index.healed(lambda: search.bm25(query, match, depth, scope))

    def positions(self, pids: Sequence[int], terms: Iterable[str]) -> dict[int, Positions]:
        return (self.opened.index or self.opened.open()).positions(pids, list(terms))

    def is_current(self, state: State) -> bool:
        search = self.opened.index
        return search is not None and search.index.is_near(state.version, A_FEW_WRITES)
