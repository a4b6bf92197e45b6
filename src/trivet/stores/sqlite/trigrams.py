"""The trigram index of one collection: passages ranked by the word similarity of pg_trgm.

Scoring every passage takes seconds in a large collection. So a term index of trigrams proposes the likeliest passages
by BM25, and those are scored exactly; the trace says when there were more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trivet.stores.contract import Found, State
from trivet.stores.sqlite.change_feed import ChangeFeed
from trivet.stores.sqlite.lexical import A_FEW_WRITES
from trivet.stores.sqlite.opened_index import OpenedIndex
from trivet.stores.sqlite.rows import CollectionRows
from trivet.text.trigrams import PreparedQuery, trigrams

if TYPE_CHECKING:
    from trivet.stores.sqlite.scope import Scope
    from trivet.stores.sqlite.term_search import TermSearch

LIKELIEST = 128  # passages scored at least; about 0.1 ms each for abstracts of 1,200 letters
PER_DOCUMENT = 8  # passages scored for each document that is wanted


class SqliteTrigramIndex:
    """Word similarity over the trigrams of the passages."""

    def __init__(self, rows: CollectionRows, feed: ChangeFeed, folder: Path) -> None:
        def open(folder: Path) -> TermSearch:
            from trivet.stores.sqlite.term_index import TermIndex
            from trivet.stores.sqlite.term_search import TermSearch

            return TermSearch(TermIndex(folder, feed, _line, f"pg_trgm/1/{rows.identity}", positions=False))

        self._feed = feed
        self.opened = OpenedIndex(folder, open)
        rows.on_reset(self.opened.reset)

    def search(
        self, keywords: str, threshold: float, depth: int, scope: Scope | None, version: int
    ) -> tuple[list[Found], tuple[str, ...]]:
        def propose(terms: list[str], count: int) -> list[Found]:
            search = self.opened.index or self.opened.open()
            search.index.catch_up(version)
            return search.index.healed(lambda: search.likeliest([_term(each) for each in terms], count, scope))

        return rank_candidates(keywords, threshold, depth, propose, self._texts)

    def is_current(self, state: State) -> bool:
        search = self.opened.index
        return search is not None and search.index.is_near(state.version, A_FEW_WRITES)

    def _texts(self, pids: Sequence[int]) -> dict[int, str]:
        """Map passages to their title and text."""
        return {pid: f"{title}\n{text}" if title else text for pid, _, title, text in self._feed.passages(pids)}


def rank_candidates(
    keywords: str,
    threshold: float,
    depth: int,
    propose: Callable[[list[str], int], list[Found]],
    texts_of: Callable[[Sequence[int]], dict[int, str]],
) -> tuple[list[Found], tuple[str, ...]]:
    """Return the best ``depth`` documents among the proposed passages, and notes for the trace."""
    from trivet.text.word_similarity import similarities  # numpy: not at `import trivet`

    query = PreparedQuery(keywords)
    if not query.trigrams:
        return [], ("no keywords in the query",)
    count = max(LIKELIEST, PER_DOCUMENT * depth)
    proposed = propose(list(query.trigrams), count)
    notes = (f"scored the {count} likeliest passages",) if len(proposed) == count else ()
    texts = texts_of([pid for _, pid, _ in proposed])
    scores = dict(zip(texts, similarities(query, list(texts.values())), strict=True))
    best: dict[int, Found] = {}
    for _, pid, did in proposed:
        score = scores.get(pid, 0.0)
        if score >= threshold and (did not in best or score > best[did][0]):
            best[did] = (score, pid, did)
    return sorted(best.values(), key=lambda hit: (-hit[0], hit[2]))[:depth], notes


def _line(text: str) -> str:
    return " ".join(_term(trigram) for trigram in dict.fromkeys(trigrams(text)))


def _term(trigram: str) -> str:
    """Return a trigram as one term: the index splits at blanks, and trigrams have letters and digits only."""
    return trigram.replace(" ", "_")
