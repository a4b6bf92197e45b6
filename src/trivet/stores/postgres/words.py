"""Which passages have these words?

BM25, as in the embedded store: our analyser's words, and Lucene's idf from a table of how many passages have each word.
How often a passage has it is summed up from the postings (``postings.py``), and for what is newer than they are, or
must hold a phrase, read out of the ``tsvector``s that the inverted index proposes. Where the server has pg_textsearch,
its index gives the best of a collection that has no postings yet. All content words first; when too few documents have
them all, any of them. A word that no passage has gives its place to the nearest one, where the question allows it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trivet.spelling import beginnings, may_be_misspelt, nearest_of
from trivet.stores.contract import Found
from trivet.stores.postgres import terms
from trivet.stores.postgres.database import Database
from trivet.stores.postgres.parts import Part, Parts
from trivet.stores.postgres.postings import K1, Lists, Postings, Sum, affordable
from trivet.stores.postgres.ranks import best, score
from trivet.stores.postgres.scope import Scope

if TYPE_CHECKING:
    from trivet.analysis import ParsedQuery

# Of a long question the rarest are kept, as many as in the embedded store: noisy questions in Chinese lose by fewer.
MAX_TERMS = 256
AND_TERMS = 4  # more words are hardly ever all in `depth` documents
FIRST_LOOK = 2_000  # passages the rarer words are in, scored before it is asked whether that was enough
MOST_SIFTED = 5_000  # passages pg_textsearch is asked for, for a scope to leave enough of

Answer = tuple[list[Found], float, tuple[str, ...]]


@dataclass(frozen=True)
class Words:
    """The words of one collection; ``table`` is the one that pg_textsearch has indexed, if there is one."""

    database: Database
    parts: Parts
    table: str | None
    passages: int
    average: float  # terms a passage
    last: int  # passage

    def find(self, query: ParsedQuery, match: str, depth: int, scope: Scope | None) -> Answer:
        known = self._known([*query.terms, *(word for words in query.phrases for word in words)])
        query, notes = self._meant(query, known, scope)
        singles = tuple(words[0] for words in query.phrases if len(words) == 1)
        phrases = [words for words in query.phrases if len(words) > 1]
        asked = self._asked(query, singles, phrases, known)
        notes += asked.notes
        ceiling = (K1 + 1.0) * sum(asked.weights.values())
        every = list(dict.fromkeys([*singles, *(term for term in query.required if term in asked.weights)]))
        if match == "all" or (match == "auto" and 1 < len(query.required) <= AND_TERMS):
            found, how = asked.best(every, phrases, depth, scope)
            if match == "all" or len(found) >= depth:
                return found, ceiling, (*notes, *how, "all words")
        found, how = asked.best(singles, phrases, depth, scope)
        return found, ceiling, (*notes, *how, "any word")

    def _known(self, wanted: Sequence[str]) -> _Known:
        """How many passages have each, and how far the postings reach in each part: one look-up a part."""
        every = list(dict.fromkeys(wanted))
        frequency = dict.fromkeys(every, 0)
        reach: dict[Part, int] = {}

        def look(part: Part) -> list[tuple[Any, ...]]:
            return self.database.all(
                f"SELECT term, passages FROM lexicon WHERE cid = {part.cid} AND term = ANY(%s) "
                f"UNION ALL SELECT '', max(last) FROM segments WHERE cid = {part.cid}",
                (every,),
            )

        for part, rows in zip(self.parts.every, self.database.together(look, self.parts.every), strict=True):
            for term, count in rows:
                if term:
                    frequency[term] += count
                else:
                    reach[part] = count or 0
        return _Known(frequency, reach)

    def _meant(self, query: ParsedQuery, known: _Known, scope: Scope | None) -> tuple[ParsedQuery, tuple[str, ...]]:
        """The query with the nearest word in the place of each that no passage has; and what was changed. Only of
        documents that may be seen: a suggestion must not tell a word that stands in others alone."""
        missing = [term for term in query.required if query.lenient and may_be_misspelt(term)]
        absent = [term for term in missing if not known.frequency[term] or not self._occurs(term, scope)]
        meant = {term: word for term in absent if (word := self._nearest(term, known, scope))}
        if not meant:
            return query, ()
        wanted, required = (
            tuple(dict.fromkeys(meant.get(term, term) for term in of)) for of in (query.terms, query.required)
        )
        told = tuple(f"did you mean {word!r} for {term!r}?" for term, word in meant.items())
        return replace(query, terms=wanted, required=required), told

    def _occurs(self, term: str, scope: Scope | None) -> bool:
        """Has any document that may be seen this term, which some document has?"""
        if scope is None:
            return True
        sought = terms.query([term], (), ())
        for part in self.parts.every:
            within, values = scope.within("p.did", part)
            sql = f"SELECT 1 FROM passages p WHERE p.cid = {part.cid} AND p.words @@ %s::tsquery{within} LIMIT 1"
            if self.database.planned(sql, (sought, *values)):
                return True
        return False

    def _nearest(self, term: str, known: _Known, scope: Scope | None) -> str | None:
        there: dict[str, int] = {}
        for begin in beginnings(term):
            for part in self.parts.every:
                sql = f"SELECT term, passages FROM lexicon WHERE cid = {part.cid} AND term LIKE %s AND passages > 0"
                for word, count in self.database.planned(sql, (f"{begin}%",)):  # letters: nothing in them is a wildcard
                    there[word] = there.get(word, 0) + count
        found = nearest_of(term, there, lambda word: self._occurs(word, scope))
        if found is not None:
            known.frequency[found] = there[found]
        return found

    def _asked(
        self, query: ParsedQuery, singles: Sequence[str], phrases: Sequence[Sequence[str]], known: _Known
    ) -> _Asked:
        every = list(dict.fromkeys([*singles, *query.terms, *(word for words in phrases for word in words)]))
        notes: tuple[str, ...] = ()
        if len(every) > MAX_TERMS:
            rarest = sorted((term for term in every if term not in singles), key=known.frequency.__getitem__)
            chosen = {*singles, *rarest[: max(0, MAX_TERMS - len(singles))]}
            notes = (f"the {MAX_TERMS} rarest of {len(every)} terms",)
            every = [term for term in every if term in chosen]
        boosts = dict(query.weights)
        weights = {term: self._idf(known.frequency[term]) * boosts.get(term, 1.0) for term in every}
        return _Asked(self, known, weights, bool(boosts), notes)

    def _idf(self, frequency: int) -> float:
        return math.log(1.0 + (max(self.passages - frequency, 0) + 0.5) / (frequency + 0.5))


@dataclass(frozen=True, slots=True)
class _Known:
    frequency: dict[str, int]
    reach: Mapping[Part, int]  # the last passage that the postings have


@dataclass(slots=True)
class _Asked:
    """The words of one question, with how much each weighs."""

    words: Words
    known: _Known
    weights: dict[str, float]
    boosted: bool
    notes: tuple[str, ...]
    _read: dict[Part, Lists] = field(default_factory=dict)

    def best(
        self, must: Sequence[str], phrases: Sequence[Sequence[str]], depth: int, scope: Scope | None
    ) -> tuple[list[Found], tuple[str, ...]]:
        """The best with all of these and every phrase; and how they were found."""
        if not self.weights or any(not self.known.frequency[term] for term in must):
            return [], ()
        plain = not must and not phrases and not self.boosted
        if plain and self.words.table is not None and not any(self.known.reach.values()):
            found = self._from_index(depth, scope)
            if found is not None:
                return found, ("pg_textsearch",)
        asked = self.words.database.together(
            lambda part: self._of(part, must, phrases, depth, scope), self.words.parts.every
        )
        return best([row for rows, _ in asked for row in rows], depth), asked[0][1]

    def _of(
        self,
        part: Part,
        must: Sequence[str],
        phrases: Sequence[Sequence[str]],
        depth: int,
        scope: Scope | None,
    ) -> tuple[list[Found], tuple[str, ...]]:
        """The best of one part."""
        rows: list[Found] = []
        notes: tuple[str, ...] = ()
        reach = 0 if phrases else self.known.reach[part]
        if reach:
            rows, notes = self._summed(part, must, depth, scope)
        if reach >= self.words.last:
            return rows, notes
        if must or phrases or reach:
            return rows + self._ranked(part, terms.query(list(self.weights), must, phrases), depth, scope, reach), notes
        return self._rarest_first(part, depth, scope), notes

    # --- by the postings ----------------------------------------------------------------------------------------------

    def _summed(
        self, part: Part, must: Sequence[str], depth: int, scope: Scope | None
    ) -> tuple[list[Found], tuple[str, ...]]:
        """The best of what the postings have of a part."""
        chosen = affordable({term: self.known.frequency[term] for term in self.weights}, must)
        notes = (f"without the {len(self.weights) - len(chosen)} commonest",) if len(chosen) < len(self.weights) else ()
        if part not in self._read:
            self._read[part] = Postings(self.words.database, part).read(chosen)
        lists = self._read[part]
        asked = Sum({term: self.weights[term] for term in chosen}, frozenset(must), max(1.0, self.words.average))
        limit = depth + depth // 2 + 16
        if scope is not None and scope.is_few:
            return self._among(part, lists, asked, depth, scope), notes
        if scope is not None:
            limit = max(limit, int(limit * 1.5 * self.words.passages / max(1, scope.count)))
        while True:
            hits = lists.best(asked, limit)
            found = best(self._there(part, hits, scope), depth)
            if len(found) >= depth or len(hits) < limit:
                return found, notes
            limit *= 8

    def _there(self, part: Part, hits: Sequence[tuple[float, int]], scope: Scope | None) -> list[Found]:
        """Those that are still there and may be seen."""
        sql = f"SELECT pid, did FROM passages WHERE cid = {part.cid} AND pid = ANY(%s::bigint[])"
        dids = dict(self.words.database.all(sql, ([pid for _, pid in hits],))) if hits else {}
        if scope is not None:
            scope.expect(dids.values())
        return [(score, pid, dids[pid]) for score, pid in hits if pid in dids and (scope is None or dids[pid] in scope)]

    def _among(self, part: Part, lists: Lists, asked: Sum, depth: int, scope: Scope) -> list[Found]:
        """The best of the few passages that a filter allows."""
        import numpy as np

        pids, dids = scope.passages(part)
        hits = lists.best(asked, len(pids), pids)
        at = np.searchsorted(pids, [pid for _, pid in hits])
        rows = [(score, pid, int(did)) for (score, pid), did in zip(hits, dids[at], strict=True)]
        return best([row for row in rows if row[2] not in scope.left_out], depth)

    # --- by the inverted index ----------------------------------------------------------------------------------------

    def _rarest_first(self, part: Part, depth: int, scope: Scope | None) -> list[Found]:
        """The best passages of those with the rarer words, widened until no other could be among them."""
        ordered = sorted(self.weights, key=self.known.frequency.__getitem__)
        room = FIRST_LOOK
        while True:
            taken, total = 0, 0
            while taken < len(ordered) and (total < room or taken == 0):
                total += self.known.frequency[ordered[taken]]
                taken += 1
            found = self._ranked(part, terms.query(ordered[:taken], (), ()), depth, scope)
            most = (K1 + 1.0) * sum(self.weights[term] for term in ordered[taken:])  # what one without them can have
            if taken == len(ordered) or (len(found) >= depth and found[-1][0] >= most):
                return found
            room *= 8

    def _ranked(self, part: Part, sought: str, depth: int, scope: Scope | None, after: int = 0) -> list[Found]:
        """Every passage behind ``after`` that the query matches, scored; one a document."""
        within, values = scope.within("p.did", part) if scope is not None else ("", [])
        expression, lexemes = score(
            {term: weight for term, weight in self.weights.items() if self.known.frequency[term]}, self.words.average
        )
        whole, limit = f"passages p WHERE p.cid = {part.cid} AND", depth + depth // 2 + 16
        if after:  # these are few: looked at one by one, for the index would give all that match and then be sifted
            few = f"SELECT n.pid, n.did, n.length, n.words FROM passages n WHERE n.cid = {part.cid} AND n.pid > {after}"
            whole = f"({few} OFFSET 0) p WHERE"
        while True:
            rows = self.words.database.planned(
                f"SELECT {expression} AS score, p.pid, p.did FROM {whole} p.words @@ %s::tsquery{within} "
                "ORDER BY score DESC, p.did, p.pid LIMIT %s",
                (*lexemes, sought, *values, limit),
            )
            found = best(rows, depth)
            if len(found) >= depth or len(rows) < limit:
                return found
            limit *= 8

    # --- by pg_textsearch ---------------------------------------------------------------------------------------------

    def _from_index(self, depth: int, scope: Scope | None) -> list[Found] | None:
        """The best of its index, sifted by the scope; None where that would take too many."""
        question = terms.line(self.weights)
        index = f"{self.words.table}_bm25"
        limit = depth + depth // 2 + 16
        if scope is not None:
            limit = max(limit, int(limit * 1.5 * self.words.passages / max(1, scope.count)))
        while limit <= MOST_SIFTED or scope is None:
            # nothing but this: it knows the scores it has computed in no other shape of statement
            rows = self.words.database.planned(
                f"SELECT -(words <@> to_bm25query(%s, '{index}')), pid, did FROM {self.words.table} "
                f"ORDER BY words <@> to_bm25query(%s, '{index}') LIMIT %s",
                (question, question, limit),
            )
            if scope is not None:
                scope.expect(did for _, _, did in rows)
            seen = [row for row in rows if row[0] > 0.0 and (scope is None or row[2] in scope)]
            found = best(seen, depth)
            if len(found) >= depth or len(rows) < limit:
                return found
            limit *= 8
        return None
