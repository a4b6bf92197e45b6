"""The lexical leg on a PostgreSQL server: which terms a query means, and how much each weighs.

All content terms are required first; where too few documents have them all, any of them. A term that no passage has is
replaced by the nearest one in the lexicon, if the query allows it. ``bm25.py`` ranks the passages.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trivet.errors import TrivetError
from trivet.stores.background_task import Start
from trivet.stores.contract import Found, State
from trivet.stores.postgres import postings
from trivet.stores.postgres.bm25 import KnownTerms, Statistics, WeightedQuery
from trivet.stores.postgres.database import Database
from trivet.stores.postgres.occurrence import Occurrence
from trivet.stores.postgres.rows import Rows
from trivet.stores.postgres.scope import Scope
from trivet.stores.postgres.tables import Tables
from trivet.text.spelling import beginnings, corrected, nearest_of

if TYPE_CHECKING:
    from trivet.text.analysis import ParsedQuery

# The rarest terms of a long query are kept, as many as in the SQLite store: noisy queries in Chinese lose with fewer.
MAX_TERMS = 256
MAX_REQUIRED = 4  # terms; more are hardly ever all in `depth` documents


class PostgresLexical:
    """The terms of one collection."""

    def __init__(self, rows: Rows, start: Start) -> None:
        self._rows, self._start = rows, start
        self._statistics: tuple[int, Statistics] | None = None  # a version and what is true of it
        self._packed = 0  # the last passage that this process has had packed into the postings

    def drop_caches(self) -> None:
        self._statistics, self._packed = None, 0

    def is_current(self, state: State) -> bool:
        return True  # the server updates its indexes with every write

    def positions(self, pids: Sequence[int], terms: Iterable[str]) -> Mapping[int, Any]:
        return {}

    def search(
        self, query: ParsedQuery, match: str, depth: int, scope: Scope | None, version: int
    ) -> tuple[list[Found], float, tuple[str, ...]]:
        rows = self._rows
        read = postings.ReadPostings(rows.database, rows.tables)
        search = _Search(rows.database, rows.tables, self._statistics_at(version), scope, read)
        return search.run(query, match, depth)

    def _statistics_at(self, version: int) -> Statistics:
        """Read the statistics, once for each version: every write changes both."""
        cached = self._statistics
        if cached is not None and cached[0] == version:
            return cached[1]
        bm25, documents, passages, count, last = self._rows.head("bm25, documents, passages, terms, last_passage")
        last = self._rows.tables.highest(last)
        found = Statistics(self._rows.bm25_table if bm25 else None, documents, passages, count, last)
        self._statistics = (version, found)
        self._pack_in_background(last)
        return found

    # --- postings -----------------------------------------------------------------------------------------------------

    def _pack_in_background(self, last: int) -> None:
        enough = last - self._packed >= postings.PACK_FROM * self._rows.tables.step
        if enough and not self._rows.database.read_only:
            self._packed = last
            self._start(self._pack, last)

    def pack(self) -> None:
        """Pack all passages into the postings."""
        last = self._rows.tables.highest(self._rows.head("last_passage")[0])
        self._pack(last)
        self._packed = last

    def _pack(self, last: int) -> None:
        with contextlib.suppress(TrivetError):  # closed meanwhile, or not allowed: the inverted index is enough
            postings.Postings(self._rows.database, self._rows.tables).pack(last)


@dataclass(frozen=True, slots=True)
class _Search:
    """One search, at one version."""

    database: Database
    tables: Tables
    statistics: Statistics
    scope: Scope | None
    read: postings.ReadPostings

    def run(self, query: ParsedQuery, match: str, depth: int) -> tuple[list[Found], float, tuple[str, ...]]:
        known = self._known([*query.terms, *(word for words in query.phrases for word in words)])
        occurrence = self._occurrence(query, known)
        query, notes = corrected(
            query,
            lambda term: occurrence.of(term, known.frequency[term]),
            lambda term: self._nearest(term, known, occurrence),
            lambda terms: known.frequency.update(self._known(terms).frequency),
        )
        singles = tuple(words[0] for words in query.phrases if len(words) == 1)
        phrases = [words for words in query.phrases if len(words) > 1]
        weighted, more_notes = self._weighted(query, singles, phrases, known)
        notes += more_notes
        required = list(dict.fromkeys([*singles, *(term for term in query.required if term in weighted.weights)]))
        if match == "all" or (match == "auto" and 1 < len(query.required) <= MAX_REQUIRED):
            found, how = weighted.best(required, phrases, depth, self.scope)
            if match == "all" or len(found) >= depth:
                return found, weighted.ceiling, (*notes, *how, "all words")
        found, how = weighted.best(singles, phrases, depth, self.scope)
        return found, weighted.ceiling, (*notes, *how, "any word")

    def _known(self, wanted: Sequence[str]) -> KnownTerms:
        """Read the frequency of every term and the reach of the postings, in one look-up."""
        every = list(dict.fromkeys(wanted))
        rows = self.database.all(
            f"SELECT term, passages FROM lexicon WHERE {self.tables.of()} AND term = ANY(%s) "
            f"UNION ALL SELECT '', max(last) FROM segments WHERE {self.tables.of()}",
            (every,),
        )
        found = dict(rows)
        reach = found.pop("") or 0
        return KnownTerms({**dict.fromkeys(every, 0), **found}, reach)

    def _weighted(
        self, query: ParsedQuery, singles: Sequence[str], phrases: Sequence[Sequence[str]], known: KnownTerms
    ) -> tuple[WeightedQuery, tuple[str, ...]]:
        """Weigh the terms of the query, the rarest where there are too many; return a note on that."""
        every = list(dict.fromkeys([*singles, *query.terms, *(word for words in phrases for word in words)]))
        notes: tuple[str, ...] = ()
        if len(every) > MAX_TERMS:
            rarest = sorted((term for term in every if term not in singles), key=known.frequency.__getitem__)
            chosen = {*singles, *rarest[: max(0, MAX_TERMS - len(singles))]}
            notes = (f"the {MAX_TERMS} rarest of {len(every)} terms",)
            every = [term for term in every if term in chosen]
        boosts = dict(query.weights)
        weights = {term: self._idf(known.frequency[term]) * boosts.get(term, 1.0) for term in every}
        return WeightedQuery(
            self.database, self.tables, self.statistics, known, weights, bool(boosts), self.read
        ), notes

    def _idf(self, frequency: int) -> float:
        return math.log(1.0 + (max(self.statistics.passages - frequency, 0) + 0.5) / (frequency + 0.5))

    # --- spelling -----------------------------------------------------------------------------------------------------

    def _occurrence(self, query: ParsedQuery, known: KnownTerms) -> Occurrence:
        """Return where the terms of the query occur; their postings are those that are ranked next."""
        tables = self.tables
        there = {term: known.frequency[term] for term in query.terms if known.frequency[term]}
        together = postings.affordable(there, (), max(1, len(tables.parts)))[:MAX_TERMS]
        return Occurrence(self.database, tables, self.scope, self.read, together, known.reach, self.statistics.last)

    def _nearest(self, term: str, known: KnownTerms, occurrence: Occurrence) -> str | None:
        there: dict[str, int] = {}
        sql = f"SELECT term, passages FROM lexicon WHERE {self.tables.of()} AND term LIKE %s AND passages > 0"
        for beginning in beginnings(term):  # letters: no wildcard among them
            there |= dict(self.database.planned(sql, (f"{beginning}%",)))
        found = nearest_of(term, there, lambda word: occurrence.of(word, there[word]))
        if found is not None:
            known.frequency[found] = there[found]
        return found
