"""BM25 on a PostgreSQL server: ranking the passages of one query.

Three sources give the same scores. The postings (``postings.py``) are summed up in this process. Passages that are
newer than the postings, and phrases, are scored by the server from the ``tsvector``s that the inverted index finds. An
index of pg_textsearch, where the server has it, ranks a collection that has no postings yet.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trivet.stores.bm25 import K1, B, rounded_sql
from trivet.stores.contract import Found
from trivet.stores.postgres import terms
from trivet.stores.postgres.database import Database
from trivet.stores.postgres.postings import Lists, ReadPostings, Sum, affordable
from trivet.stores.postgres.scope import Scope
from trivet.stores.postgres.tables import Tables
from trivet.stores.ranking import best_passages, rows_for, rows_where_few_are_left

FIRST_LOOK = 2_000  # passages with the rarer terms that are scored before more are read
MAX_SIFTED = 5_000  # passages read from pg_textsearch so that a scope leaves enough of them

Ranked = tuple[list[Found], tuple[str, ...]]  # passages, and notes for the trace


@dataclass(frozen=True, slots=True)
class Statistics:
    """What BM25 needs to know about a collection at one version."""

    bm25_table: str | None  # the table that pg_textsearch has indexed, if there is one
    documents: int
    passages: int
    terms: int
    last: int  # the highest number that a passage can have

    @property
    def average(self) -> float:
        """Terms of a passage on average."""
        return self.terms / max(1, self.passages)


@dataclass(frozen=True, slots=True)
class KnownTerms:
    """What the lexicon knows about the terms of a query."""

    frequency: dict[str, int]  # passages that have the term
    reach: int  # the last passage in the postings


@dataclass(slots=True)
class WeightedQuery:
    """The terms of one query with their weights, ready to rank passages."""

    database: Database
    tables: Tables
    statistics: Statistics
    known: KnownTerms
    weights: dict[str, float]  # idf, times the boost of the query
    boosted: bool
    read: ReadPostings
    _looked_up: set[int] = field(default_factory=set)  # passages
    _dids: dict[int, int] = field(default_factory=dict)  # the documents of those that exist

    @property
    def ceiling(self) -> float:
        """The score of a perfect match."""
        return (K1 + 1.0) * sum(self.weights.values())

    def best(
        self, required: Sequence[str], phrases: Sequence[Sequence[str]], depth: int, scope: Scope | None
    ) -> Ranked:
        """Return the best passages that have all required terms and every phrase."""
        if not self.weights or any(not self.known.frequency[term] for term in required):
            return [], ()
        plain = not required and not phrases and not self.boosted
        if plain and self.statistics.bm25_table is not None and not self.known.reach:
            found = self._from_textsearch(self.statistics.bm25_table, depth, scope)
            if found is not None:
                return found, ("pg_textsearch",)
        rows: list[Found] = []
        notes: tuple[str, ...] = ()
        reach = 0 if phrases else self.known.reach
        if reach:
            rows, notes = self._from_postings(required, depth, scope)
        if reach >= self.statistics.last:
            return rows, notes
        if required or phrases or reach:
            matching = terms.tsquery(list(self.weights), required, phrases)
            return best_passages(rows + self._from_tsvectors(matching, depth, scope, reach), depth), notes
        return self._rarest_first(depth, scope), notes

    # --- postings -----------------------------------------------------------------------------------------------------

    def _from_postings(self, required: Sequence[str], depth: int, scope: Scope | None) -> Ranked:
        frequency = {term: self.known.frequency[term] for term in self.weights}
        chosen = affordable(frequency, required, max(1, len(self.tables.parts)))
        notes = (f"without the {len(self.weights) - len(chosen)} commonest",) if len(chosen) < len(self.weights) else ()
        lists, average = self.read.of(chosen), max(1.0, self.statistics.average)
        weighted = Sum({term: self.weights[term] for term in chosen}, frozenset(required), average)
        if scope is not None and scope.is_few:
            return self._of_few(lists, weighted, depth, scope), notes
        limit = self._first_limit(depth, scope)
        while True:
            hits = lists.best(weighted, limit)
            found = best_passages(self._visible(hits, scope), depth)
            if len(found) >= depth or len(hits) < limit:
                return found, notes
            limit = rows_where_few_are_left(limit, len(found), depth)

    def _first_limit(self, depth: int, scope: Scope | None) -> int:
        """Return how many passages to read first so that ``depth`` documents are probably left."""
        known = self.statistics
        return rows_for(depth, known.documents, known.passages, None if scope is None else scope.count)

    def _visible(self, hits: Sequence[tuple[float, int]], scope: Scope | None) -> list[Found]:
        """Return the hits that still exist and may be seen."""
        fresh = [pid for _, pid in hits if pid not in self._looked_up]
        if fresh:
            head = f"SELECT pid, did FROM {self.tables.passages}"
            self._dids.update(self.tables.select(self.database.all, head, "pid", fresh))
            self._looked_up.update(fresh)
        dids = {pid: self._dids[pid] for _, pid in hits if pid in self._dids}
        if scope is not None:
            scope.expect(dids.values())
        return [(score, pid, dids[pid]) for score, pid in hits if pid in dids and (scope is None or dids[pid] in scope)]

    def _of_few(self, lists: Lists, weighted: Sum, depth: int, scope: Scope) -> list[Found]:
        """Rank the few passages that a filter allows."""
        import numpy as np

        pids, dids = scope.passages()
        hits = lists.best(weighted, len(pids), pids)
        at = np.searchsorted(pids, [pid for _, pid in hits])
        rows = [(score, pid, int(did)) for (score, pid), did in zip(hits, dids[at], strict=True)]
        return best_passages([row for row in rows if row[2] not in scope.left_out], depth)

    # --- tsvectors ----------------------------------------------------------------------------------------------------

    def _rarest_first(self, depth: int, scope: Scope | None) -> list[Found]:
        """Rank the passages with the rarer terms, and add commoner ones until no other passage could score higher."""
        ordered = sorted(self.weights, key=self.known.frequency.__getitem__)
        room = FIRST_LOOK
        while True:
            taken, total = 0, 0
            while taken < len(ordered) and (total < room or taken == 0):
                total += self.known.frequency[ordered[taken]]
                taken += 1
            found = self._from_tsvectors(terms.tsquery(ordered[:taken], (), ()), depth, scope)
            best_other = (K1 + 1.0) * sum(self.weights[term] for term in ordered[taken:])
            if taken == len(ordered) or (len(found) >= depth and found[-1][0] >= best_other):
                return found
            room *= 8

    def _from_tsvectors(self, matching: str, depth: int, scope: Scope | None, after: int = 0) -> list[Found]:
        """Score every passage after ``after`` that matches a ``tsquery``."""
        within, values = scope.within("p.did") if scope is not None else ("", [])
        expression, lexemes = score_sql(
            {term: weight for term, weight in self.weights.items() if self.known.frequency[term]},
            self.statistics.average,
        )
        # few after ``after``: read one by one, because the inverted index would return all that match
        matches = f"p.pid > {after} AND (p.words || '') @@ %s::tsquery" if after else "p.words @@ %s::tsquery"
        sql = (
            f"SELECT {expression} AS score, p.pid, p.did FROM {self.tables.passages} p WHERE {self.tables.of('p')} "
            f"AND {matches}{within} ORDER BY score DESC, p.did, p.pid LIMIT %s"
        )
        limit = depth + depth // 2 + 16
        while True:
            rows = self.database.planned(sql, (*lexemes, matching, *values, limit))
            found = best_passages(rows, depth)
            if len(found) >= depth or len(rows) < limit:
                return found
            limit *= 8

    # --- pg_textsearch ------------------------------------------------------------------------------------------------

    def _from_textsearch(self, table: str, depth: int, scope: Scope | None) -> list[Found] | None:
        """Rank by the index of pg_textsearch; None where a scope would leave too few of what it returns."""
        text, index = terms.line(self.weights), f"{table}_bm25"
        limit = self._first_limit(depth, scope)
        while limit <= MAX_SIFTED or scope is None:
            # in any other form of statement pg_textsearch computes the scores a second time
            rows = self.database.planned(
                f"SELECT -(words <@> to_bm25query(%s, '{index}')), pid, did FROM {table} "
                f"ORDER BY words <@> to_bm25query(%s, '{index}') LIMIT %s",
                (text, text, limit),
            )
            if scope is not None:
                scope.expect(did for _, _, did in rows)
            found = best_passages([row for row in rows if row[0] > 0.0 and (scope is None or row[2] in scope)], depth)
            if len(found) >= depth or len(rows) < limit:
                return found
            limit *= 8
        return None


def score_sql(weights: Mapping[str, float], average: float) -> tuple[str, list[str]]:
    """Return BM25 of a passage ``p``, by its ``tsvector``, as an expression and its parameters."""
    norm = f"({K1 * (1.0 - B):.9g} + {K1 * B / max(1.0, average):.9g} * {rounded_sql('p.length')})"
    parts, lexemes = [], []
    for term, weight in weights.items():
        count = f"width_bucket(ts_rank('{{1,1,1,1}}', p.words, %s::tsquery), '{_THRESHOLDS}'::real[])"
        parts.append(f"(SELECT {(K1 + 1.0) * weight:.9g} * n / (n + {norm}) FROM (SELECT {count} AS n OFFSET 0) t)")
        lexemes.append(terms.lexeme(term))
    return " + ".join(parts) or "0.0", lexemes


def _rank_thresholds(most: int = 48) -> str:
    """Return the values of ``ts_rank`` that separate the counts of a term, as an array literal.

    With all weights 1, ``ts_rank`` of one term is the sum of 1/i² over its positions, divided by the limit of that sum,
    so it gives the number of positions. Counts above ``most`` are too close to tell apart; they hardly change BM25.
    """
    sums = [0.0]
    for count in range(1, most + 1):
        sums.append(sums[-1] + 1.0 / (count * count))
    middles = [(low + high) / 2 / 1.64493406685 for low, high in itertools.pairwise(sums)]
    return "{" + ",".join(f"{middle:.7f}" for middle in middles) + "}"


_THRESHOLDS = _rank_thresholds()
